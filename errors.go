package rlm

import (
	"errors"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/router"
)

// Errors of sessions and engines. Test for them with [errors.Is].
var (
	// ErrClosed answers the use of a session or an engine after its Close.
	ErrClosed = errors.New("it is closed")
	// ErrInUse answers a call while another call of the same session runs: a session has
	// one owner. Open or fork a session for each goroutine.
	ErrInUse = errors.New("the session is in use by another call")
	// ErrNoTier says that no tier may run a snippet. A [*router.NoTierError] has the
	// reason against each.
	ErrNoTier = router.ErrNoTier
)

// SetupError says why a loop could not begin: a model without a key, an unreachable
// server, an empty context, a bound that makes no sense. No model was asked, no snippet
// ran, and nothing was paid for.
type SetupError = repl.SetupError

// refuse makes the error of a loop that could not begin.
func refuse(err error) error {
	var setup *SetupError
	if err == nil || errors.As(err, &setup) {
		return err
	}
	return &SetupError{Err: err}
}
