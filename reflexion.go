package rlm

import (
	"context"
	"encoding/json"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflexion"
)

// ReflexionOutcome says how a run of [Engine.Reflexion] ended.
type ReflexionOutcome = reflexion.Result

// ReflexionTask is a text for a model to write and for judges to accept.
type ReflexionTask struct {
	// Name and Begun make the run durable, as those of [AnswerTask] do. A run that goes on
	// begins again, with the answers that are kept.
	Name  string
	Begun json.RawMessage
	// Labels name the caller of the run: see [SessionConfig]. They are in its events.
	Labels map[string]string
	// Config has the task, the evidence, the models and the bounds.
	Config reflexion.Config
}

// Reflexion lets a model write a draft and judges compare it with evidence, and the model
// revises the draft until it passes. No snippet runs. The Outcome's status says how the run
// ended; a draft that does not pass is not an error. The error is a [*SetupError] if the run
// could not begin, the context's cause if the context ended, or the failure that ended the
// run.
func (e *Engine) Reflexion(ctx context.Context, task ReflexionTask) (ReflexionOutcome, error) {
	refused := func(err error) (ReflexionOutcome, error) {
		return ReflexionOutcome{Status: ledger.StatusFailed, Reason: err.Error()}, refuse(ctx, err)
	}
	ctx, leave, err := e.enter(ctx, Policy{}, task.Labels)
	if err != nil {
		return refused(err)
	}
	defer leave()

	cfg := task.Config
	cfg.Progress = addLabels(cfg.Progress, task.Labels)
	err = ledger.CheckModels(ctx, cfg.Models, cfg.Progress, cfg.Model, cfg.JudgeModel,
		cfg.EmbedModel)
	if err != nil {
		return refused(err)
	}

	kept := keptRun{name: task.Name, loop: "reflexion", title: cfg.Task, begun: task.Begun}
	var outcome ReflexionOutcome
	err = e.keepRun(ctx, kept, func(ctx context.Context) (_ ledger.Status, _ string, err error) {
		outcome, err = reflexion.Run(ctx, cfg)
		return outcome.Status, outcome.Reason, err
	})
	return outcome, err
}
