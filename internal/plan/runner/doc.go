// Package runner runs the snippets of a session in the tiers that the plans of package router
// choose.
//
// It opens tiers on first use, moves the session's namespace when a snippet needs another tier than
// the last, and tries the next tier after a rejection: the snippet starts again with the state from
// before its first run, and the replay answers the host calls that it has already made.
package runner
