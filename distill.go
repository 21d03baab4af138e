package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/journal"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/ledger"
)

// DistillOutcome has the findings of a run of [Engine.Distill].
type DistillOutcome = distill.Result

// DistillTask is a corpus of traces of runs, some of which failed.
type DistillTask struct {
	// Corpus are the traces: see [distill.Parse].
	Corpus distill.Corpus
	// Policy says which tiers may run the snippets.
	Policy Policy
	// Name and Begun make the run durable, as those of [AnswerTask] do. A run that goes on
	// begins again, with the answers that are kept.
	Name  string
	Begun json.RawMessage
	// Labels name the caller of the run: see [SessionConfig]. They are in its events, too.
	Labels map[string]string
	// Config has the models and the bounds. Distill sets Run.Open from the fields above.
	// Without a model, failures are clustered by their words.
	Config distill.Config
}

// Distill finds clusters of failures with a common cause, and proposes edits that would fix
// them. Partial in the Outcome says that the budget ran out first. The error is a
// [*SetupError] if the run could not begin, the context's cause if the context ended, or the
// failure that ended the run; the Outcome then has the findings until then.
func (e *Engine) Distill(ctx context.Context, task DistillTask) (DistillOutcome, error) {
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return DistillOutcome{}, refuse(ctx, err)
	}
	defer leave()

	cfg := task.Config
	if cfg.Run.WithDefaults().Model != "" {
		if err := checkRun(ctx, cfg.Run); err != nil {
			return DistillOutcome{}, refuse(ctx, err)
		}
	}
	cfg.Run.Open = e.opener(task.Policy, task.Labels)
	cfg.Run.Progress = addLabels(cfg.Run.Progress, task.Labels)

	kept := keptRun{
		name: task.Name, loop: "distill", begun: task.Begun,
		title: fmt.Sprintf("%d failures of %d traces", len(task.Corpus.Failures),
			len(task.Corpus.Failures)+task.Corpus.Passed),
	}
	var outcome DistillOutcome
	err = e.keepRun(ctx, kept, func(ctx context.Context) (status ledger.Status, reason string, err error) {
		outcome, err = distill.Run(ctx, task.Corpus, cfg)
		return statusOf(ctx, &outcome, err), strings.Join(outcome.Notes, "; "), err
	})
	return outcome, err
}

// statusOf returns how a distillation ended, in the words of the other loops.
func statusOf(ctx context.Context, outcome *DistillOutcome, err error) ledger.Status {
	var stopped *journal.StoppedError
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
