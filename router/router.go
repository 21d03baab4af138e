// Package router picks the cheapest tier that can run a snippet, and moves the
// session's namespace when a snippet needs another tier than the last.
//
// # The order of decisions
//
// An [Analyser] returns a [Verdict]: what a snippet [Needs], or that it did not understand
// the snippet. A [Policy] says what the caller allows. A [Plan] puts both together with
// what the tiers are and where the session's namespace lives. It holds the chain of tiers
// that may run the snippet, cheapest first, and a [Refusal] with its reason for each other
// tier. A [Runner] follows the plan: it opens tiers when they are first used, moves the
// namespace, and goes on to the next tier when one rejects the snippet.
//
// # Words
//
// The home of a namespace is the tier in which it lives. It stays there as long as the
// home can run what comes, or until a snippet that computes for long is better off in a
// faster tier. To escalate is to go on to another tier after a rejection: the snippet
// starts again from the state before it, and the journal answers the host calls that it
// made already. An empty chain is an error that wraps [ErrNoTier]: the router fails closed.
//
// A route is not a wall. The analyser may be wrong, and then a snippet is rejected or
// meets an exception. Only tiers isolate.
package router
