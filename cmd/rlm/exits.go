package main

import (
	"errors"
	"fmt"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tiers"
)

// The exit codes are part of the interface: see docs/cli.md.
const (
	exitOK          = 0
	exitRaised      = 1   // the snippet raised, or broke its interpreter
	exitUsage       = 2   // usage or bad input
	exitNoTier      = 3   // no tier may run the snippet
	exitLimit       = 4   // a limit fired
	exitBroken      = 5   // the tier broke
	exitPartial     = 6   // the run's budget ran out
	exitNoAnswer    = 7   // the run ended without an answer
	exitParked      = 8   // the run waits for a person's decision
	exitDamaged     = 9   // what is kept is damaged
	exitInterrupted = 130 // Ctrl-C
)

// exitError carries an exit code. err is nil if the message has been printed already.
type exitError struct {
	code int
	err  error
}

// Error returns the message, or the exit code if that has been printed.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the error without the exit code.
func (e *exitError) Unwrap() error { return e.err }

// Exit returns an error with an exit code. err is nil if the message has been printed already.
func Exit(code int, err error) error { return &exitError{code, err} }

// Usage gives an error the exit code of wrong usage. Nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

// Broken gives an error the exit code of a failure during the work. Nil stays nil.
func Broken(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitBroken, err}
}

// joinExit adds an error to that of a command, whose exit code stays.
func joinExit(err, more error) error {
	var exit *exitError
	switch {
	case more == nil:
		return err
	case err == nil:
		return more
	case errors.As(err, &exit):
		return &exitError{exit.code, errors.Join(exit.err, more)}
	}
	return errors.Join(err, more)
}

// asUsage gives an error without an exit code that of wrong usage.
func asUsage(err error) error {
	var exit *exitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return &exitError{exitUsage, err}
}

// addExitCode gives the error of a snippet or a run its exit code: no tier ran it, or one broke.
func addExitCode(err error) error {
	var rejected *tiers.RejectedError
	if errors.Is(err, rlm.ErrNoTier) || errors.As(err, &rejected) {
		return &exitError{exitNoTier, err}
	}
	return &exitError{exitBroken, err}
}
