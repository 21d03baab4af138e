package reflect

import (
	"context"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Task is an agent trace that a model searches for lessons in [RunOn].
type Task struct {
	// Task holds the policy, the labels and the name. A durable run that resumes starts over,
	// reusing the recorded answers.
	repl.Task
	// Subject is the trace: see [ParseTrace].
	Subject Subject
	// Config holds the models and the bounds. RunOn sets its Open.
	Config Config
}

// RunOn lets a model explore a trace with snippets, which run in the tiers of an engine, until it
// submits its analysis. The Outcome's status reports how the run ended; running out of budget or
// iterations is not an error. The error is a [*repl.SetupError] if the run could not begin, the
// context's cause if the context ended, or the failure that ended the run.
func RunOn(ctx context.Context, engine repl.Engine, task Task) (outcome Outcome, err error) {
	cfg := task.Config
	cfg.Progress = ledger.AddLabels(cfg.Progress, task.Labels)

	err = engine.RunLoop(ctx, task.Task, repl.Loop{
		Kind: "reflect", Title: task.Subject.Question,
		Check: func(ctx context.Context) error {
			return ledger.CheckModels(ctx, cfg.Models, cfg.Progress, cfg.Model, cfg.SubModel)
		},
		Run: func(ctx context.Context, lent repl.Lent) (_ ledger.Status, _ string, err error) {
			cfg.Open = lent.Open
			outcome, err = Run(ctx, cfg, task.Subject)
			return outcome.Status, outcome.Reason, err
		},
	})
	if err != nil && outcome.Status == "" {
		outcome.Status, outcome.Reason = ledger.StatusFailed, err.Error()
	}
	return outcome, err
}
