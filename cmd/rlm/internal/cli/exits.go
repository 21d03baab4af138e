package cli

import (
	"errors"
	"fmt"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tiers"
)

// The exit codes are part of the interface: see docs/reference/cli.md.
const (
	ExitOK          = 0
	ExitRaised      = 1   // the snippet raised, or broke its interpreter
	ExitUsage       = 2   // usage or bad input
	ExitNoTier      = 3   // no tier may run the snippet
	ExitLimit       = 4   // a limit fired
	exitBroken      = 5   // the tier broke
	ExitPartial     = 6   // the run's budget ran out
	ExitNoAnswer    = 7   // the run ended without an answer
	ExitParked      = 8   // the run waits for a person's decision
	ExitDamaged     = 9   // stored data is damaged
	ExitInterrupted = 130 // Ctrl-C
)

// ExitError carries an exit code. err is nil if the message has been printed already.
type ExitError struct {
	Code int
	Err  error
}

// Error returns the message, or the exit code if the message has been printed.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the error without the exit code.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit returns an error with an exit code. err is nil if the message has been printed already.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Usage gives an error the exit code of a usage error. Nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &ExitError{ExitUsage, err}
}

// Broken gives an error the exit code of a failure during the work. Nil stays nil.
func Broken(err error) error {
	if err == nil {
		return nil
	}
	return &ExitError{exitBroken, err}
}

// JoinExit adds an error to a command's error, and keeps its exit code.
func JoinExit(err, more error) error {
	var exit *ExitError
	switch {
	case more == nil:
		return err
	case err == nil:
		return more
	case errors.As(err, &exit):
		return &ExitError{exit.Code, errors.Join(exit.Err, more)}
	}
	return errors.Join(err, more)
}

// AsUsage makes an error without an exit code a usage error.
func AsUsage(err error) error {
	var exit *ExitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return &ExitError{ExitUsage, err}
}

// AddExitCode gives the error of a snippet or a run its exit code: no tier ran it, or a tier
// broke.
func AddExitCode(err error) error {
	var rejected *tiers.RejectedError
	if errors.Is(err, rlm.ErrNoTier) || errors.As(err, &rejected) {
		return &ExitError{ExitNoTier, err}
	}
	return &ExitError{exitBroken, err}
}
