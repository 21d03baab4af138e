package rlm

import (
	"context"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/rr"
	"github.com/rlmhq/rlm/router"
)

// ReflectOutcome says how a run of [Engine.Reflect] ended.
type ReflectOutcome = rr.Outcome

// ReflectTask is the record of an agent's work, from which models are to learn.
type ReflectTask struct {
	// Subject is the record: see [rr.ParseTrace].
	Subject rr.Subject
	// Policy says which tiers may run the snippets.
	Policy router.Policy
	// Labels say for whom the run works: see [SessionConfig]. Its events have them, too.
	Labels map[string]string
	// Config is the models and the bounds. Its Open is made of Policy.
	Config rr.Config
}

// Reflect has a model explore a record by snippets, which the engine runs, until it hands
// over what can be learned. The Outcome's status says how the run ended; a budget or
// iterations that were used up are no error. The error is a [*SetupError] if nothing was
// begun, the context's cause if it ended, or what broke.
func (e *Engine) Reflect(ctx context.Context, task ReflectTask) (ReflectOutcome, error) {
	refused := func(err error) (ReflectOutcome, error) {
		return ReflectOutcome{Status: repl.StatusFailed, Reason: err.Error()}, &SetupError{err}
	}
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return refused(err)
	}
	defer leave()
	if err := task.Policy.Validate(); err != nil {
		return refused(err)
	}

	cfg := task.Config
	if err := repl.Reach(ctx, cfg.Models, cfg.Model, cfg.SubagentModel); err != nil {
		return refused(err)
	}
	cfg.Open = e.opener(task.Policy, task.Labels)
	cfg.Progress = labelled(cfg.Progress, task.Labels)

	outcome, err := rr.Run(ctx, cfg, task.Subject)
	if err != nil && outcome.Elapsed == 0 { // the loop's clock has not begun
		err = &SetupError{err}
	}
	return outcome, err
}
