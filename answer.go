package rlm

import (
	"context"
	"errors"
	"slices"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
)

// AnswerOutcome says how a run of [Engine.Answer] ended.
type AnswerOutcome = run.Outcome

// AnswerTask is a question about contexts, for models that write snippets.
type AnswerTask struct {
	// Contexts are what the question is about. Snippets read them as context, context_1
	// and so on; they never enter a prompt as a whole.
	Contexts []Context
	// Functions are what snippets may call on the host. The prompt lists them.
	Functions []Function
	// Policy says which tiers may run the snippets.
	Policy Policy
	// Labels say for whom the run works: see [SessionConfig]. Its events have them, too.
	Labels map[string]string
	// Signal is what the caller knows about the task, for the triggers of [HookOutput],
	// which measures the output itself.
	Signal run.Signal
	// Config is the question, the models and the bounds. Its Inputs and Open are made of
	// the fields above.
	Config run.Config
}

// Answer has models answer a question: the root model writes snippets, the engine runs
// them, and the value that they give to FINAL is the answer. The Outcome's status says how
// the run ended; a budget that was used up is no error. The error is a [*SetupError] if
// nothing was begun, the context's cause if it ended, or what broke.
func (e *Engine) Answer(ctx context.Context, task AnswerTask) (AnswerOutcome, error) {
	var outcome AnswerOutcome
	err := e.withTask(ctx, task, func(ctx context.Context, cfg run.Config) (err error) {
		outcome, err = answer(ctx, cfg, task.Labels)
		return err
	})
	if err != nil && outcome.Status == "" {
		outcome.Status, outcome.Reason = ledger.StatusFailed, err.Error()
	}
	return outcome, err
}

// answer runs the loop once its models have answered that they are there.
func answer(ctx context.Context, cfg run.Config, labels map[string]string) (AnswerOutcome, error) {
	if err := checkRun(ctx, cfg); err != nil {
		return AnswerOutcome{}, refuse(err)
	}
	cfg.Progress = addLabels(cfg.Progress, labels)
	return run.Run(ctx, cfg)
}

// Estimate returns what a run of the task may use. It asks no model, and opens the
// contexts only to measure them. The error is a [*SetupError].
func (e *Engine) Estimate(ctx context.Context, task AnswerTask) (run.Estimate, error) {
	var estimate run.Estimate
	err := e.withTask(ctx, task, func(ctx context.Context, cfg run.Config) (err error) {
		estimate, err = run.EstimateRun(ctx, cfg)
		return refuse(err)
	})
	return estimate, err
}

// withTask opens a task's contexts as long as use takes.
func (e *Engine) withTask(
	ctx context.Context, task AnswerTask, use func(context.Context, run.Config) error,
) (err error) {
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return refuse(err)
	}
	defer leave()

	in, err := openContexts(ctx, task.Contexts)
	if err != nil {
		return refuse(err)
	}
	defer func() { err = errors.Join(err, in.close()) }()

	cfg := task.Config
	if cfg.Tools, err = addFunctions(e.log, cfg.Tools, task.Functions); err != nil {
		return refuse(err)
	}
	cfg.Inputs = in.list
	cfg.Open = e.opener(task.Policy, task.Labels)

	return use(ctx, cfg)
}

// labelled adds labels to the events that progress gets.
func addLabels(progress func(ledger.Event), labels map[string]string) func(ledger.Event) {
	if progress == nil || len(labels) == 0 {
		return progress
	}
	return func(e ledger.Event) {
		e.Labels = labels
		progress(e)
	}
}

// checkRun asks each server whether it can serve its model, so that a run fails before it
// has spent anything.
func checkRun(ctx context.Context, cfg run.Config) error {
	cfg = cfg.WithDefaults()
	names := slices.Concat([]string{cfg.Model, cfg.SubModel}, cfg.ByDepth, cfg.Allowed)
	for _, agent := range cfg.Agents {
		names = append(names, agent.Model)
	}
	return ledger.CheckModels(ctx, cfg.Models, names...)
}
