package distill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
)

// Task is a corpus of traces for [RunOn], some of them of failed runs.
type Task struct {
	// Task holds the policy, the labels and the name. A durable run that resumes starts over,
	// reusing the recorded answers.
	repl.Task
	// Corpus holds the traces: see [Parse].
	Corpus Corpus
	// Config holds the models and the bounds. RunOn sets Run.Open and Run.SQL. Without a model,
	// failures are clustered by their words.
	Config Config
}

// RunOn finds clusters of failures with a common cause, and proposes edits that would fix them,
// with snippets that run in the tiers of an engine. Partial in the Outcome reports that the
// budget ran out first. The error is a [*repl.SetupError] if the run could not begin, the
// context's cause if the context ended, or the failure that ended the run; the Outcome then holds
// the findings up to that point.
func RunOn(ctx context.Context, engine repl.Engine, task Task) (outcome Outcome, err error) {
	cfg := task.Config
	cfg.Run.Progress = ledger.AddLabels(cfg.Run.Progress, task.Labels)
	failures := len(task.Corpus.Failures)

	err = engine.RunLoop(ctx, task.Task, repl.Loop{
		Kind: "distill", Title: fmt.Sprintf("%d failures of %d traces", failures, failures+task.Corpus.Passed),
		Check: func(ctx context.Context) error {
			if cfg.Run.WithDefaults().Model == "" {
				return nil
			}
			return run.CheckModels(ctx, cfg.Run)
		},
		Run: func(ctx context.Context, lent repl.Lent) (status ledger.Status, reason string, err error) {
			cfg.Run.Open, cfg.Run.SQL = lent.Open, lent.SQL
			outcome, err = Run(ctx, task.Corpus, cfg)
			return endingOf(ctx, &outcome, err), strings.Join(outcome.Notes, "; "), err
		},
	})
	return outcome, err
}

// endingOf returns the status of a distillation that ended, in the terms of all loops.
func endingOf(ctx context.Context, outcome *Outcome, err error) ledger.Status {
	var stopped *runlog.StoppedError
	switch {
	case ctx.Err() != nil && !errors.As(context.Cause(ctx), &stopped):
		return ledger.StatusCanceled
	case err != nil:
		return ledger.StatusFailed
	case outcome.Partial:
		return ledger.StatusPartial
	}
	return ledger.StatusAnswered
}
