package reflect

import (
	"context"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Task is the record of an agent's work, in which a model looks for lessons, for [RunOn].
type Task struct {
	// Task has the policy, the labels and the name. A durable run that goes on begins again, with
	// the answers that are kept.
	repl.Task
	// Subject is the record: see [ParseTrace].
	Subject Subject
	// Config has the models and the bounds. RunOn sets its Open.
	Config Config
}

// RunOn lets a model explore a record with snippets, which run in the tiers of an engine, until the
// model hands over its analysis. The Outcome's status says how the run ended; an exhausted budget and
// exhausted iterations are not errors. The error is a [*repl.SetupError] if the run could not begin,
// the context's cause if the context ended, or the failure that ended the run.
func RunOn(ctx context.Context, engine repl.Engine, task Task) (outcome Outcome, err error) {
	cfg := task.Config
	cfg.Progress = ledger.AddLabels(cfg.Progress, task.Labels)

	err = engine.RunLoop(ctx, task.Task, repl.Loop{
		Kind: "reflect", Title: task.Subject.Question,
		Check: func(ctx context.Context) error {
			return ledger.CheckModels(ctx, cfg.Models, cfg.Progress, cfg.Model, cfg.SubModel)
		},
		Run: func(ctx context.Context, open repl.Opener) (_ ledger.Status, _ string, err error) {
			cfg.Open = open
			outcome, err = Run(ctx, cfg, task.Subject)
			return outcome.Status, outcome.Reason, err
		},
	})
	if err != nil && outcome.Status == "" {
		outcome.Status, outcome.Reason = ledger.StatusFailed, err.Error()
	}
	return outcome, err
}
