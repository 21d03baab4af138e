package runner

import (
	"errors"

	"github.com/rlmhq/rlm/tiers"
)

// errMismatch says that a snippet which was started again in another tier made other host
// calls than before, so that the answers it had been given do not fit. It comes wrapped
// in a [*tiers.BrokenError].
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

// routerName stands for a tier in errors that come from none.
const routerName = "router"

// asRejection returns the rejection that err is, nil if it is anything else. It is nil,
// too, if a tier broke because of another's rejection.
func asRejection(err error) *tiers.RejectedError {
	var broken *tiers.BrokenError
	var rejected *tiers.RejectedError
	if errors.As(err, &broken) || !errors.As(err, &rejected) {
		return nil
	}
	return rejected
}

// asBroken makes an error of a tier a [*tiers.BrokenError], unless it is one or a
// rejection. Effects are for the errors that do not say.
func asBroken(tier string, effects tiers.Effects, err error) error {
	var broken *tiers.BrokenError
	if errors.As(err, &broken) || asRejection(err) != nil {
		return err
	}
	return &tiers.BrokenError{Tier: tier, Effects: effects, Err: err}
}
