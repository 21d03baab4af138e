package rlm

import (
	"context"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/router"
)

// ReflectOutcome says how a run of [Engine.Reflect] ended.
type ReflectOutcome = reflect.Outcome

// ReflectTask is the record of an agent's work, from which models are to learn.
type ReflectTask struct {
	// Subject is the record. [reflect.ParseTrace] reads records of several kinds.
	Subject reflect.Subject
	// Policy says which tiers may run the snippets.
	Policy router.Policy
	// Labels say for whom the run works: see [SessionConfig]. Its events have them, too.
	Labels map[string]string
	// Config is the models and the bounds. Its Open is made of the fields above.
	Config reflect.Config
}

// Reflect has a model explore a record by snippets, which the engine runs, until it hands
// over what can be learned. The Outcome's status says how the run ended; a budget or
// iterations that were used up are no error. The error is a [*SetupError] if nothing was
// begun, the context's cause if it ended, or what broke.
func (e *Engine) Reflect(ctx context.Context, task ReflectTask) (ReflectOutcome, error) {
	refused := func(err error) (ReflectOutcome, error) {
		return ReflectOutcome{Status: ledger.StatusFailed, Reason: err.Error()}, refuse(err)
	}
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return refused(err)
	}
	defer leave()

	cfg := task.Config
	if err := ledger.CheckModels(ctx, cfg.Models, cfg.Model, cfg.SubagentModel); err != nil {
		return refused(err)
	}
	cfg.Open = e.opener(task.Policy, task.Labels)
	cfg.Progress = labelled(cfg.Progress, task.Labels)

	return reflect.Run(ctx, cfg, task.Subject)
}
