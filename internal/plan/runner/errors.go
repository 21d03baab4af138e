package runner

import (
	"errors"

	"github.com/rlmhq/rlm/tiers"
)

// errMismatch reports that a snippet, restarted in another tier, made other host calls than before,
// so that the recorded answers do not fit. It is wrapped in a [*tiers.BrokenError].
var errMismatch = errors.New("the snippet made different host calls when it ran again")

var (
	errClosed = errors.New("the session is closed")
	errInUse  = errors.New("the session is in use by another call")
)

// enter begins a call of the session's owner, until leave is called.
func (r *Runner) enter() (leave func(), err error) {
	if !r.using.TryLock() {
		return nil, errInUse
	}
	if r.closed {
		r.using.Unlock()
		return nil, errClosed
	}
	return r.using.Unlock, nil
}

// routerName is used as the tier's name in errors that no tier caused.
const routerName = "router"

// asRejection returns err as a rejection, or nil if err is not a rejection. It also returns nil if
// a tier broke because of another tier's rejection.
func asRejection(err error) *tiers.RejectedError {
	var broken *tiers.BrokenError
	var rejected *tiers.RejectedError
	if errors.As(err, &broken) || !errors.As(err, &rejected) {
		return nil
	}
	return rejected
}

// asBroken converts an error of a tier to a [*tiers.BrokenError], unless it is already one, or a
// rejection. The given effects apply to errors that do not state theirs.
func asBroken(tier string, effects tiers.Effects, err error) error {
	var broken *tiers.BrokenError
	if errors.As(err, &broken) || asRejection(err) != nil {
		return err
	}
	return &tiers.BrokenError{Tier: tier, Effects: effects, Err: err}
}
