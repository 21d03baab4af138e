package ledger

import (
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/texts"
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

// Failed reports whether the code did not run to its end.
func (r *Snippet) Failed() bool { return r.Status != tiers.StatusOK }

// Failure is the exception in a line, empty if there was none.
func (r *Snippet) Failure() string {
	if r.Exception == nil {
		return ""
	}
	return r.Exception.Type + ": " + texts.Truncate(r.Exception.Message, 500)
}

// Traceback is the exception with its traceback, as far as there is one; empty if
// there was no exception.
func (r *Snippet) Traceback() string {
	switch {
	case r.Exception == nil:
		return ""
	case r.Exception.Traceback != "":
		return r.Exception.Traceback
	}
	return strings.TrimRight(r.Exception.Type+": "+r.Exception.Message, ": ")
}
