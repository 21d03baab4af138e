package repl

import (
	"context"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Runner runs the snippets of one session, one at a time, and keeps its variables.
type Runner interface {
	// Run runs a snippet. However a snippet ends, including by an exception or a limit, the
	// outcome is a result; an error means that no tier could run it or that a tier broke.
	Run(ctx context.Context, job tiers.Job) (router.Result, error)
	// Home returns the tier that holds the variables of a language, or "" before the first
	// snippet.
	Home(language tiers.Language) string
	// Close ends the session.
	Close() error
}

// Opener opens the Runner of a session. The context bounds only the opening. An engine of the
// root package has an Opener for each policy.
type Opener func(ctx context.Context, cfg tiers.Config) (Runner, error)

// DefaultOutput bounds the output of a snippet that a session keeps, in bytes.
const DefaultOutput = 1 << 20
