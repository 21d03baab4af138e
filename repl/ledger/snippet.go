package ledger

import (
	"time"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Snippet is what became of one piece of code.
type Snippet struct {
	// Language ran it, Source is the code as the model wrote it.
	Language tiers.Language
	Source   string
	router.Result
	// Elapsed is the time it took, waiting for sub-calls included.
	Elapsed time.Duration
	// New are the variables that it made, in the order of their making.
	New []string
	// Calls are the sub-calls that it made, in the order of their ending.
	Calls []SubCall
}
