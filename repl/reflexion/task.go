package reflexion

import (
	"context"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/router"
)

// Task is a task for [RunOn]: a text that a model writes and judges accept.
type Task struct {
	// Task holds the labels and the name. A durable run that resumes starts over, reusing the
	// recorded answers. The loop runs no snippets, so the policy is not used.
	repl.Task
	// Config holds the task, the evidence, the models and the bounds.
	Config Config
}

// RunOn is [Run] with an engine: the run can be durable, and ends with the engine. It first asks
// each server whether it can serve its model. The error is a [*repl.SetupError] if the run could
// not begin, the context's cause if the context ended, or the failure that ended the run.
func RunOn(ctx context.Context, engine repl.Engine, task Task) (outcome Outcome, err error) {
	cfg := task.Config
	cfg.Progress = ledger.AddLabels(cfg.Progress, task.Labels)
	task.Policy = router.Policy{}

	err = engine.RunLoop(ctx, task.Task, repl.Loop{
		Kind: "reflexion", Title: cfg.Task,
		Check: func(ctx context.Context) error {
			return ledger.CheckModels(ctx, cfg.Models, cfg.Progress, cfg.Model, cfg.SubModel, cfg.EmbedModel)
		},
		Run: func(ctx context.Context, _ repl.Lent) (_ ledger.Status, _ string, err error) {
			outcome, err = Run(ctx, cfg)
			return outcome.Status, outcome.Reason, err
		},
	})
	if err != nil && outcome.Status == "" {
		outcome.Status, outcome.Reason = ledger.StatusFailed, err.Error()
	}
	return outcome, err
}
