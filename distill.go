package rlm

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/repl/distill"
)

// DistillOutcome has the findings of a run of [Engine.Distill].
type DistillOutcome = distill.Result

// DistillTask is a corpus of traces of runs, some of which failed.
type DistillTask struct {
	// Corpus are the traces: see [ParseCorpus].
	Corpus distill.Corpus
	// Policy says which tiers may run the snippets.
	Policy Policy
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

	return distill.Run(ctx, task.Corpus, cfg)
}

// ParseCorpus reads the traces of runs, at most 64 MiB, in one of [reflect.TraceFormats] or as
// objects with an error each; "auto" detects which. The error names the invalid line.
func ParseCorpus(r io.Reader, format string) (distill.Corpus, error) {
	return distill.Parse(r, format)
}
