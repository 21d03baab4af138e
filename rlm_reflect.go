package rlm

import (
	"context"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/router"
)

// ReflectTask is the record of an agent's work, from which models are to learn.
type ReflectTask struct {
	// Subject is the record. Package repl/reflect reads records of several kinds.
	Subject reflect.Subject
	// Policy says which tiers may run the snippets.
	Policy router.Policy
	// Config is the models and the bounds. Its Open is made of Policy.
	Config reflect.Config
}

// Reflect has a model explore a record by snippets, which the engine runs, until it
// hands over what can be learned. The Outcome's status says how it ended; a budget or
// iterations that were used up are no error. The error is a *SetupError if nothing
// was begun, the context's cause if it ended, or what broke.
func (e *Engine) Reflect(ctx context.Context, task ReflectTask) (reflect.Outcome, error) {
	refused := func(err error) (reflect.Outcome, error) {
		return reflect.Outcome{Status: ledger.StatusFailed, Reason: err.Error()}, &SetupError{err}
	}
	if err := task.Policy.Validate(); err != nil {
		return refused(err)
	}
	cfg := task.Config
	if err := ledger.CheckModels(ctx, cfg.Models, cfg.Model, cfg.SubagentModel); err != nil {
		return refused(err)
	}
	cfg.Open = e.Opener(task.Policy)
	outcome, err := reflect.Run(ctx, cfg, task.Subject)
	if err != nil && outcome.Elapsed == 0 { // the loop's clock has not begun
		err = &SetupError{err}
	}
	return outcome, err
}
