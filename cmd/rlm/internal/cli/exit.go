package cli

import (
	"errors"
	"fmt"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// The exit codes are part of the interface; see docs/reference/cli.md.
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

// ExitError carries an exit code. Err is nil if the message has already been printed.
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

// Exit returns an error with an exit code. err is nil if the message has already been printed.
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

// AddExitCode gives the error of a snippet or a run its exit code, depending on whether no tier ran
// it or a tier broke.
func AddExitCode(err error) error {
	var rejected *tiers.RejectedError
	if errors.Is(err, rlm.ErrNoTier) || errors.As(err, &rejected) {
		return &ExitError{ExitNoTier, err}
	}
	return &ExitError{exitBroken, AdviseModel(err)}
}

// aVariable matches the name of an environment variable.
var aVariable = lazyregexp.New(`^[A-Z][A-Z0-9_]*$`)

// AdviseKey says which key a provider refused, and how to use another key. from is the key's
// origin.
func AdviseKey(provider, from string) string {
	keep := "rlm keys set " + provider
	switch {
	case from == "":
		return keep + " keeps a key"
	case aVariable.MatchString(from):
		return fmt.Sprintf("the key is that of the variable %s, which comes before one of %s: "+
			"change or unset it", from, keep)
	case from == "the settings":
		return "the key is that of the setting keys, which comes before all others: change it there"
	default:
		return fmt.Sprintf("the key is the one kept in %s: %s keeps another one", from, keep)
	}
}

// IsUnknownModel reports whether a server does not have the model of a call.
func IsUnknownModel(err error) bool {
	var failure *llm.Error
	return errors.As(err, &failure) && failure.Kind != nil && failure.Kind.Error() == "unknown model"
}

// AdviseModel adds advice to the error of a model. It returns other errors unchanged.
func AdviseModel(err error) error {
	var failure *llm.Error
	switch {
	case !errors.As(err, &failure) || failure.Provider == "" || failure.Kind == nil:
		return err
	case failure.Kind.Error() == "key refused" && failure.Provider == "acp":
		return err
	case failure.Kind.Error() == "key refused":
		return fmt.Errorf("%w; %s", err, AdviseKey(failure.Provider, failure.KeyFrom))
	case IsUnknownModel(err):
		return fmt.Errorf("%w; rlm models %s lists the models", err, failure.Provider)
	}
	return err
}
