package ledger

import (
	"time"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Snippet is the outcome of one piece of code.
type Snippet struct {
	// Language is the language that ran the code; Source is the code as the model wrote it.
	Language tiers.Language
	Source   string
	router.Result
	// Elapsed is its duration, including waiting for sub-calls.
	Elapsed time.Duration
	// New are the names of its new variables, in order of creation.
	New []string
	// Calls are its sub-calls, in the order in which they ended.
	Calls []SubCall
}
