package repl

import (
	"context"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Runner runs the snippets of one session, one after another, and keeps its variables.
type Runner interface {
	// Run runs a snippet. The endings of a snippet, its exceptions and limits among them,
	// are results; an error says that no tier could run it or that a tier broke.
	Run(ctx context.Context, job tiers.Job) (router.Result, error)
	// Home returns the tier in which the variables of a language live, empty before the
	// first snippet.
	Home(language tiers.Language) string
	// Close ends the session.
	Close() error
}

// Opener opens the Runner of a session. The context bounds the opening alone. An engine of
// the root package has one for each policy.
type Opener func(ctx context.Context, cfg tiers.Config) (Runner, error)

// DefaultOutput bounds the output of a snippet that a session keeps, in bytes.
const DefaultOutput = 1 << 20
