package workflow

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Task is a workflow file and its input, for [RunOn].
type Task struct {
	// Task holds the policy, the labels and the name. A durable run that resumes starts over,
	// reusing the recorded answers.
	repl.Task
	// File is the workflow: see [Parse].
	File *File
	// Input is the initial state.
	Input map[string]any
	// Config holds the models and the bounds. RunOn sets its Open.
	Config Config
}

var errNoFile = errors.New("no workflow file: read one with workflow.Parse")

// RunOn runs the nodes of a file one after another over one state, in the tiers of an engine. The
// Outcome's status reports how the run ended; its state holds the results of the nodes that ran.
// The error is a [*repl.SetupError] if the run could not begin, with a line for each problem in the
// file; a [*NodeError] if a node failed; the context's cause if the context ended; or the failure
// that ended the run. Running out of budget is not an error.
func RunOn(ctx context.Context, engine repl.Engine, task Task) (outcome Outcome, err error) {
	if task.File == nil {
		err := &repl.SetupError{Err: errNoFile}
		return Outcome{Status: ledger.StatusFailed, Reason: err.Error()}, err
	}
	cfg := task.Config
	cfg.Progress = ledger.AddLabels(cfg.Progress, task.Labels)

	err = engine.RunLoop(ctx, task.Task, repl.Loop{
		Kind: "workflow", Title: task.File.Title(),
		Run: func(ctx context.Context, lent repl.Lent) (_ ledger.Status, _ string, err error) {
			cfg.Open = lent.Open
			outcome, err = task.File.Run(ctx, cfg, task.Input)
			return outcome.Status, outcome.Reason, err
		},
	})
	if err != nil && outcome.Status == "" {
		outcome.Status, outcome.Reason = ledger.StatusFailed, err.Error()
	}
	return outcome, err
}
