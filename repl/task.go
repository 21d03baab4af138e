package repl

import (
	"context"
	"encoding/json"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/router"
)

// Task holds the fields that the tasks of all loops have in common.
type Task struct {
	// Policy determines which tiers may run the snippets.
	Policy router.Policy
	// Labels identify the caller of the run. They also appear in its events.
	Labels map[string]string
	// Name makes the run durable: the engine's store records the answers of its calls as they
	// arrive. A later run with the same name resumes it, and pays again only for calls that were
	// in flight when the earlier process ended. An empty name records nothing.
	Name string
	// Begun is data that the caller stores with a durable run, as JSON, such as how to start it
	// again. The first run with the name sets it.
	Begun json.RawMessage
	// NotKept, if set, lets the run continue when the store fails: it is called once with the
	// error. Such a run does not wait for the disk and stores no state of its sandboxes, so a later
	// run with its name repeats it from the beginning, with the answers that the store has. Its
	// calls cannot wait for a human decision.
	NotKept func(err error)
}

// Engine runs loops. The engine of package rlm implements it.
type Engine interface {
	// RunLoop runs a loop. The error is a [*SetupError] if the loop could not begin, the context's
	// cause if the context ended, or the failure that ended the loop.
	RunLoop(ctx context.Context, task Task, loop Loop) error
}

// Loop is one run of a loop, as its package passes it to an [Engine].
type Loop struct {
	// Kind is the loop's command, and Title the question. A durable run stores both.
	Kind, Title string
	// Check is called before the loop begins. If it is nil, nothing is checked.
	Check func(ctx context.Context) error
	// Run runs the loop with the functions that the engine lends, and returns how the loop ended.
	Run func(ctx context.Context, lent Lent) (status ledger.Status, reason string, err error)
}

// Lent holds the functions that an engine lends to a loop: Open opens the sessions of its snippets,
// and SQL, if not nil, queries their tables.
type Lent struct {
	Open Opener
	SQL  SQL
}
