// Package router picks the cheapest tier that can run a snippet, and moves the
// session's namespace when a snippet needs another tier than the last.
//
// # The order of decisions
//
// An [Analyser] says what a snippet [Needs], or that it did not understand it: a
// [Verdict]. A [Policy] says what the caller allows. [Policy.Plan] puts both
// together with what the tiers are and where the session's namespace lives: a
// [Plan] holds the chain of tiers that may run the snippet, cheapest first, and
// for each other tier a [Refusal] with its reason. A [Runner] follows the plan:
// it opens tiers when they are first used, moves the namespace, and goes on to
// the next tier when one rejects the snippet.
//
// # Words
//
// The home of a namespace is the tier in which it lives; it stays there as long
// as the home can run what comes. To escalate is to go on to another tier after
// a rejection: the snippet starts again from the state before it, and the
// journal answers the host calls that it made already. An empty chain is an
// error that wraps [ErrNoTier]: the router fails closed.
//
// A route is no wall. The analyser may be wrong, and then a snippet is rejected
// or meets an exception; only tiers isolate.
package router
