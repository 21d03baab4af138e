package rlm

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/repl/distill"
)

// DistillOutcome says what a run of [Engine.Distill] found.
type DistillOutcome = distill.Result

// DistillTask is a corpus of traces of runs, of which some failed.
type DistillTask struct {
	// Corpus are the traces: see [ParseCorpus].
	Corpus distill.Corpus
	// Policy says which tiers may run the snippets.
	Policy Policy
	// Labels say for whom the run works: see [SessionConfig]. Its events have them, too.
	Labels map[string]string
	// Config is the models and the bounds. The Open of its Run is made of the fields
	// above. Without a model, failures are clustered by their words.
	Config distill.Config
}

// Distill makes clusters of failures with a common cause, and proposes edits that would
// end them. Partial in the Outcome says that the budget was used up first. The error is a
// [*SetupError] if nothing was begun, the context's cause if it ended, or what broke; the
// Outcome then says how far the run came.
func (e *Engine) Distill(ctx context.Context, task DistillTask) (DistillOutcome, error) {
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return DistillOutcome{}, refuse(err)
	}
	defer leave()

	cfg := task.Config
	if cfg.Run.WithDefaults().Model != "" {
		if err := checkRun(ctx, cfg.Run); err != nil {
			return DistillOutcome{}, refuse(err)
		}
	}
	cfg.Run.Open = e.opener(task.Policy, task.Labels)
	cfg.Run.Progress = addLabels(cfg.Run.Progress, task.Labels)

	return distill.Run(ctx, task.Corpus, cfg)
}

// ParseCorpus reads traces of runs as JSON Lines, at most 64 MiB. The error names the line
// that is wrong.
func ParseCorpus(r io.Reader) (distill.Corpus, error) { return distill.Parse(r) }
