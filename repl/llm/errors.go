package llm

import (
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// Kinds of failure that callers handle. Test for them with [errors.Is]. docs/reference/models.md
// lists all kinds; the message of a kind never changes.
var (
	ErrContextLength error = kind.ErrContextLength // the prompt exceeds the model's window
	ErrRateLimited   error = kind.ErrRateLimited   // the same request may succeed later
	ErrServer        error = kind.ErrServer        // the server failed
)

// Error is a failed call. It never contains a key.
type Error struct {
	// Kind is the kind of failure, such as [ErrRateLimited].
	Kind     error
	Provider string
	Model    string
	Status   int    // the HTTP status, 0 if the server did not answer
	Message  string // the server's message, shortened, without control characters
	// KeyFrom is the origin of the key that the server refused: an environment variable, "the
	// settings", or the place where the key is stored. It is empty for other errors.
	KeyFrom string
	// RetryAfter is the wait that the server requested, or 0 if it requested none.
	RetryAfter time.Duration
	Attempts   int
	// Usage is an estimate of the tokens that the failed call used, if part of a reply had arrived.
	// It is zero if the call cannot have cost anything.
	Usage Usage
	Err   error // the cause; nil if Message describes it completely
}

// Error names the provider, the model, the kind of failure and its cause.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Provider != "" {
		b.WriteString(e.Provider + ": ")
	}
	if e.Model != "" {
		fmt.Fprintf(&b, "cannot ask model %q: ", e.Model)
	} else {
		b.WriteString("cannot be used: ")
	}

	fmt.Fprintf(&b, "%v", e.Kind)
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP status %d)", e.Status)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (after %d attempts)", e.Attempts)
	}
	return b.String()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	var inner []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			inner = append(inner, err)
		}
	}
	return inner
}
