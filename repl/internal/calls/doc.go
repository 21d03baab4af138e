// Package calls asks models on behalf of the loops. Every call of a run goes through one
// [Caller]: it reserves the maximum cost in the [Ledger], waits at the [Gate], asks, settles the
// cost, and emits events.
package calls
