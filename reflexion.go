package rlm

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflexion"
)

// ReflexionOutcome says how a run of [Engine.Reflexion] ended.
type ReflexionOutcome = reflexion.Result

// ReflexionTask is a text that a model is to write and judges are to pass.
type ReflexionTask struct {
	// Labels say for whom the run works: see [SessionConfig]. Its events have them.
	Labels map[string]string
	// Config is the task, the evidence, the models and the bounds.
	Config reflexion.Config
}

// Reflexion has a model write a draft, has judges hold it against evidence, and has it
// revised until it passes. No snippet runs. The Outcome's status says how the run ended; a
// draft that did not pass is no error. The error is a [*SetupError] if nothing was begun,
// the context's cause if it ended, or what broke.
func (e *Engine) Reflexion(ctx context.Context, task ReflexionTask) (ReflexionOutcome, error) {
	refused := func(err error) (ReflexionOutcome, error) {
		return ReflexionOutcome{Status: ledger.StatusFailed, Reason: err.Error()}, refuse(err)
	}
	ctx, leave, err := e.enter(ctx, Policy{}, task.Labels)
	if err != nil {
		return refused(err)
	}
	defer leave()

	cfg := task.Config
	if err := ledger.CheckModels(ctx, cfg.Models, cfg.Model, cfg.JudgeModel); err != nil {
		return refused(err)
	}
	cfg.Progress = addLabels(cfg.Progress, task.Labels)

	return reflexion.Run(ctx, cfg)
}

// ParseMemory reads what is known before the first draft, as JSON of at most 4 MiB. The
// error says where the text is wrong, and what is wanted there.
func ParseMemory(r io.Reader) (reflexion.Memory, error) { return reflexion.ParseMemory(r) }
