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
	// ErrClosed is the error of every use of a session or an engine after its Close.
	ErrClosed = errors.New("closed")
	// ErrInUse is the error of a call while another call of the same session runs. Open or
	// fork a session for each goroutine.
	ErrInUse = errors.New("the session is in use by another call")
	// ErrNoTier means that no tier may run a snippet. A [*router.NoTierError] gives the reason
	// against each tier.
	ErrNoTier = router.ErrNoTier
)

// SetupError explains why a loop could not begin: a model without a key, an unreachable server, an
// empty context, an invalid bound. No model was asked and no snippet ran, so the loop cost
// nothing.
type SetupError = repl.SetupError

// errEngineClosed is ErrClosed for an engine.
var errEngineClosed = fmt.Errorf("the engine is %w", ErrClosed)

// refuse makes err a [*SetupError], unless the context has ended. A loop that its caller ended
// during preparation was not set up wrongly: its error is the context's cause. A nil error stays
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
