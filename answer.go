package rlm

import (
	"context"
	"errors"
	"slices"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/rlm"
	"github.com/rlmhq/rlm/router"
)

// AnswerOutcome says how a run of [Engine.Answer] ended.
type AnswerOutcome = rlm.Outcome

// AnswerTask is a question about contexts, for models that write snippets.
type AnswerTask struct {
	// Contexts are what the question is about. Snippets find them as context, context_1
	// and so on; they never enter a prompt as a whole.
	Contexts []Context
	// Functions are what snippets may call on the host. The prompt lists them.
	Functions []Function
	// Policy says which tiers may run the snippets.
	Policy router.Policy
	// Labels say for whom the run works: see [SessionConfig]. Its events have them, too.
	Labels map[string]string
	// Config is the question, the models and the bounds. Its Inputs and Open are made of
	// the fields above.
	Config rlm.Config
}

// Answer has models answer a question: the root model writes snippets, the engine runs
// them, and the value that they give to FINAL is the answer. The Outcome's status says how
// the run ended; a budget that was used up is no error. The error is a [*SetupError] if
// nothing was begun, the context's cause if it ended, or what broke.
func (e *Engine) Answer(ctx context.Context, task AnswerTask) (AnswerOutcome, error) {
	var outcome AnswerOutcome
	err := e.withTask(ctx, task, func(ctx context.Context, cfg rlm.Config) (err error) {
		outcome, err = e.solve(ctx, cfg, task.Labels)
		return err
	})
	if err != nil && outcome.Status == "" {
		outcome.Status, outcome.Reason = rlm.StatusFailed, err.Error()
	}
	return outcome, err
}

// solve runs the loop once its models have answered that they are there.
func (e *Engine) solve(ctx context.Context, cfg rlm.Config, labels map[string]string) (AnswerOutcome, error) {
	if err := checkModels(ctx, cfg.WithDefaults()); err != nil {
		return AnswerOutcome{}, &SetupError{err}
	}

	cfg.Progress = labelled(cfg.Progress, labels)
	outcome, err := rlm.Run(ctx, cfg)
	if err != nil && outcome.Elapsed == 0 { // the loop's clock has not begun
		err = &SetupError{err}
	}
	return outcome, err
}

// Estimate returns what a run of the task may use. It asks no model, and opens the
// contexts only to measure them.
func (e *Engine) Estimate(ctx context.Context, task AnswerTask) (rlm.Estimate, error) {
	var estimate rlm.Estimate
	err := e.withTask(ctx, task, func(ctx context.Context, cfg rlm.Config) error {
		var err error
		if estimate, err = rlm.EstimateRun(ctx, cfg); err != nil {
			err = &SetupError{err}
		}
		return err
	})
	return estimate, err
}

// withTask opens a task's contexts as long as use takes.
func (e *Engine) withTask(
	ctx context.Context, task AnswerTask, use func(context.Context, rlm.Config) error,
) (err error) {
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return &SetupError{err}
	}
	defer leave()
	if err := task.Policy.Validate(); err != nil {
		return &SetupError{err}
	}

	in, err := openContexts(ctx, task.Contexts)
	if err != nil {
		return &SetupError{err}
	}
	defer func() { err = errors.Join(err, in.close()) }()

	cfg := task.Config
	if cfg.Tools, err = e.tools(cfg.Tools, task.Functions); err != nil {
		return &SetupError{err}
	}
	cfg.Inputs = in.list
	cfg.Open = e.opener(task.Policy, task.Labels)
	return use(ctx, cfg)
}

// tools adds host functions to those of a loop.
func (e *Engine) tools(tools *repl.Tools, functions []Function) (*repl.Tools, error) {
	if len(functions) == 0 {
		return tools, nil
	}
	more := make([]repl.Tool, len(functions))
	for i, f := range functions {
		var err error
		if more[i], err = f.tool(e.log); err != nil {
			return nil, err
		}
	}
	return tools.With(more...)
}

// labelled adds labels to the events that progress gets.
func labelled(progress func(repl.Event), labels map[string]string) func(repl.Event) {
	if progress == nil || len(labels) == 0 {
		return progress
	}
	return func(e repl.Event) {
		e.Labels = labels
		progress(e)
	}
}

// checkModels asks each server whether it can serve its model, so that a run fails before
// it has spent anything.
func checkModels(ctx context.Context, cfg rlm.Config) error {
	names := slices.Concat([]string{cfg.Model, cfg.SubModel}, cfg.ByDepth, cfg.Allowed)
	for _, agent := range cfg.Agents {
		names = append(names, agent.Model)
	}
	return repl.Reach(ctx, cfg.Models, names...)
}
