// Package calls asks models for the loops. Every call of a run goes through one
// [Caller]: it reserves what the call may cost in the [Ledger], waits at the [Gate],
// asks, settles the cost, and emits events.
package calls
