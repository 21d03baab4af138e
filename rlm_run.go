package rlm

import (
	"context"
	"errors"
	"slices"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/router"
)

// The parts of a run that embedders name. Package repl/run has the loop.
type (
	// RunConfig says with which models and within which bounds a run works.
	RunConfig = run.Config
	// Outcome is what became of a run.
	Outcome = run.Outcome
	// Estimate is what a run may take, before it is made.
	Estimate = run.Estimate
)

// Task is a question about contexts, for models that write snippets.
type Task struct {
	// Contexts are what the question is about. Snippets find them as context,
	// context_1 and so on; they never enter a prompt as a whole.
	Contexts []Context
	// Policy says which tiers may run the snippets.
	Policy router.Policy
	// Run is the question, the models and the bounds. Its Inputs and Open are made
	// of the fields above.
	Run RunConfig
}

// SetupError is why a run could not begin: a model without a key, a server that is
// away, a context that is empty, a bound that makes no sense. Nothing was asked,
// run or paid for.
type SetupError struct{ Err error }

// Error is the reason.
func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *SetupError) Unwrap() error { return e.Err }

// Answer has models answer a question: the root model writes snippets, the engine
// runs them, and what they hand to FINAL is the answer. The Outcome's status says
// how it ended; a budget that was used up is no error. The error is a *SetupError
// if nothing was begun, the context's cause if it ended, or what broke.
func (e *Engine) Answer(ctx context.Context, task Task) (Outcome, error) {
	var outcome Outcome
	err := e.withTask(ctx, task, func(cfg RunConfig) (err error) {
		outcome, err = e.solve(ctx, cfg)
		return err
	})
	if err != nil && outcome.Status == "" {
		outcome.Status, outcome.Reason = ledger.StatusFailed, err.Error()
	}
	return outcome, err
}

// solve runs the loop once its models have been asked whether they are there.
func (e *Engine) solve(ctx context.Context, cfg RunConfig) (Outcome, error) {
	if err := checkModels(ctx, cfg.WithDefaults()); err != nil {
		return Outcome{}, &SetupError{err}
	}
	outcome, err := run.Run(ctx, cfg)
	if err != nil && outcome.Elapsed == 0 { // the loop's clock has not begun
		err = &SetupError{err}
	}
	return outcome, err
}

// Estimate says what a run of the task may take. It asks no model, and opens the
// contexts only to measure them.
func (e *Engine) Estimate(ctx context.Context, task Task) (Estimate, error) {
	var estimate Estimate
	err := e.withTask(ctx, task, func(cfg RunConfig) error {
		var err error
		if estimate, err = run.EstimateRun(ctx, cfg); err != nil {
			err = &SetupError{err}
		}
		return err
	})
	return estimate, err
}

// withTask opens a task's contexts as long as use takes.
func (e *Engine) withTask(ctx context.Context, task Task, use func(RunConfig) error) (err error) {
	if err := task.Policy.Validate(); err != nil {
		return &SetupError{err}
	}
	in, err := openContexts(ctx, task.Contexts)
	if err != nil {
		return &SetupError{err}
	}
	defer func() { err = errors.Join(err, in.close()) }()
	cfg := task.Run
	cfg.Inputs, cfg.Open = in.list, e.Opener(task.Policy)
	return use(cfg)
}

// checkModels asks each server once whether it can serve its model: that is better
// known before a run than in its middle.
func checkModels(ctx context.Context, cfg RunConfig) error {
	names := append([]string{cfg.Model, cfg.SubModel}, append(slices.Clone(cfg.ByDepth), cfg.Allowed...)...)
	for _, agent := range cfg.Agents {
		names = append(names, agent.Model)
	}
	return ledger.CheckModels(ctx, cfg.Models, names...)
}
