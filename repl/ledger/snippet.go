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
	// Elapsed is the snippet's duration, including the time it waited for sub-calls.
	Elapsed time.Duration
	// New holds the names of the snippet's new variables, in order of creation.
	New []string
	// Calls holds the snippet's sub-calls, in the order in which they ended.
	Calls []SubCall
}
