package repl

import (
	"context"
	"encoding/json"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/router"
)

// Task is what all loops have in common, apart from what they are about.
type Task struct {
	// Policy says which tiers may run the snippets.
	Policy router.Policy
	// Labels name the caller of the run. They are in its events, too.
	Labels map[string]string
	// Name makes the run durable: the answers of its calls are kept in the engine's store as they
	// come. A further run of the name goes on with it, and pays for nothing twice but the calls that
	// were in flight when the earlier process ended. Empty keeps nothing.
	Name string
	// Begun is what the caller keeps with a durable run, as JSON, such as how to begin it again. The
	// first run of the name sets it.
	Begun json.RawMessage
}

// Engine runs loops. The engine of package rlm is one.
type Engine interface {
	// RunLoop runs a loop. The error is a [*SetupError] if the loop could not begin, the context's
	// cause if the context ended, or the failure that ended the loop.
	RunLoop(ctx context.Context, task Task, loop Loop) error
}

// Loop is one run of a loop, as its package hands it to an [Engine].
type Loop struct {
	// Kind is the loop's command, and Title the question. A durable run keeps both.
	Kind, Title string
	// Check is called before the loop begins. Nil checks nothing.
	Check func(ctx context.Context) error
	// Run runs the loop, whose snippets run in what open opens. It returns how the loop ended.
	Run func(ctx context.Context, open Opener) (status ledger.Status, reason string, err error)
}
