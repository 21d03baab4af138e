package rlm

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/router"
)

// Errors of sessions and engines. Test for them with [errors.Is].
var (
	// ErrClosed is returned by every use of a session or an engine after Close.
	ErrClosed = errors.New("closed")
	// ErrInUse is returned by a method of a session while another call on the same session is
	// running. Open or fork a session for each goroutine.
	ErrInUse = errors.New("the session is in use by another call")
	// ErrNoTier means that no tier may run a snippet. A [*router.NoTierError] gives each tier's
	// reason.
	ErrNoTier = router.ErrNoTier
)

// SetupError explains why a loop could not begin: a model without a key, an unreachable server, an
// empty context, an invalid bound. No model was asked and no snippet ran, so the loop cost
// nothing.
type SetupError = repl.SetupError

// errEngineClosed is ErrClosed with a message for engines.
var errEngineClosed = fmt.Errorf("the engine is %w", ErrClosed)

// refuse wraps err in a [*SetupError], unless the context has ended. A loop that its caller ended
// during preparation has no setup error, so refuse returns the context's cause. A nil error stays
// nil.
func refuse(ctx context.Context, err error) error {
	var setup *SetupError
	if err == nil || errors.As(err, &setup) {
		return err
	}

	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(err, cause) {
			return err
		}
		return cause
	}
	return &SetupError{Err: err}
}
