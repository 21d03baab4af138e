// Package runner runs the snippets of a session where the plans of package router send them.
//
// It opens tiers on first use, moves the session's namespace when a snippet needs another tier than
// the last, and tries the next tier after a rejection: the snippet starts again from the state
// before it, and the replay answers the host calls that it has already made.
package runner
