// Package router decides which tier runs a snippet: the cheapest one that can. A decision depends
// only on its arguments. The engine of package rlm carries it out.
//
// # The order of decisions
//
// An analyser returns a [Verdict]: either the snippet's [Needs], or the reason why it did not
// understand the snippet. A [Policy] states the caller's rules. A [Plan] combines both with the
// tiers, each a [Candidate], and the [Standing] of the session's namespace. It holds the chain of
// tiers that may run the snippet, cheapest first, and a [Refusal] with its reason for each other
// tier. The runner of a session follows the plan: it opens tiers on first use, moves the namespace,
// and tries the next tier after a rejection. A [Result] reports where the snippet ran.
//
// # Words
//
// The home of a namespace is the tier in which it lives. The namespace stays in its home until a
// snippet needs another tier, or computes long enough for a faster tier to be worth a move. To
// escalate is to try another tier after a rejection: the snippet starts again with the state from
// before its first run, and a replay answers the host calls that it has already made. An empty
// chain is an error that wraps [ErrNoTier]: the router fails closed.
//
// Routing does not isolate; only tiers do. If the analyser is wrong, the snippet is rejected or
// gets an exception.
package router
