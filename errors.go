package rlm

import "errors"

// Errors of sessions and engines. Test for them with [errors.Is].
var (
	// ErrClosed answers the use of a session or an engine after its Close.
	ErrClosed = errors.New("it is closed")
	// ErrInUse answers a call while another call of the same session runs: a session has
	// one owner. Open or fork a session for each goroutine.
	ErrInUse = errors.New("the session is in use by another call")
)

// SetupError says why a loop could not begin: a model without a key, an unreachable
// server, an empty context, a bound that makes no sense. No model was asked, no snippet
// ran, and nothing was paid for.
type SetupError struct{ Err error }

// Error returns the reason.
func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *SetupError) Unwrap() error { return e.Err }
