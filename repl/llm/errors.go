package llm

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// KindError is a kind of failure. Test for one with errors.Is; scripts and
// records call it by its text.
type KindError string

// Error returns the kind's text.
func (k KindError) Error() string { return string(k) }

// The kinds of failure.
const (
	ErrNoKey         KindError = "no key"
	ErrUnknownName   KindError = "unknown provider" // the part of a name before the slash
	ErrMisconfigured KindError = "bad configuration"
	ErrUnreachable   KindError = "server not reachable"
	ErrAuth          KindError = "key refused"       // or not allowed to use the model
	ErrQuota         KindError = "no credit left"    // waiting does not help
	ErrUnknownModel  KindError = "unknown model"     // the server does not have it
	ErrBadRequest    KindError = "bad request"       // whatever else is wrong with it
	ErrContextLength KindError = "prompt too long"   // for the model's window
	ErrRefused       KindError = "refused by filter" // the server would not hand the prompt to the model
	ErrRateLimited   KindError = "rate limited"      // waiting helps
	ErrServer        KindError = "server error"
	ErrTimeout       KindError = "no reply in time"
	ErrCut           KindError = "reply cut off"
	ErrMalformed     KindError = "malformed reply"      // not what the format says
	ErrTooLarge      KindError = "reply too large"      // more bytes than allowed
	ErrRedirect      KindError = "redirected elsewhere" // not followed: prompt and key would go there
	ErrNoReply       KindError = "no reply on file"     // script or record has none for the request
	ErrBadFile       KindError = "bad file"             // a script, record or price table that cannot be read
)

// kinds are all kinds of failure.
var kinds = []KindError{
	ErrNoKey, ErrUnknownName, ErrMisconfigured, ErrUnreachable, ErrAuth, ErrQuota, ErrUnknownModel, ErrBadRequest,
	ErrContextLength, ErrRefused, ErrRateLimited, ErrServer, ErrTimeout, ErrCut, ErrMalformed, ErrTooLarge,
	ErrRedirect, ErrNoReply, ErrBadFile,
}

// Known reports whether the kind is one of this package's.
func (k KindError) Known() bool { return slices.Contains(kinds, k) }

// Error is a failed call. It never holds a key.
type Error struct {
	Kind     KindError
	Provider string
	Model    string
	Status   int    // of HTTP, 0 if there was no answer
	Message  string // the server's words, shortened, without control characters
	// RetryAfter is how long the server asked to wait, 0 if it did not say.
	RetryAfter time.Duration
	Attempts   int
	// Usage is what the failed call may have used, estimated, if a part of a
	// reply had come. It is zero if nothing can have been charged.
	Usage Usage
	Err   error // the cause below, nil if the server's words are the cause
}

// Error says who failed at what, and what is to be done about it if it is known.
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
	b.WriteString(e.Kind.Error())
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

// Is reports whether the target is the error's kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// Unwrap returns the cause below.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed when it is made again.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case ErrRateLimited, ErrServer, ErrUnreachable, ErrTimeout, ErrCut:
		return true
	default:
		return false
	}
}
