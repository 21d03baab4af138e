package rlm

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
)

// Outcome reports how a run of [Engine.Ask] ended.
type Outcome = run.Outcome

// Task is a question about contexts, for models that write snippets.
type Task struct {
	// Task contains the policy, the labels and the name. A named run is durable: it keeps its turns
	// in Options.Store. A run continues only with the contexts and the question of the earlier
	// call. Other models lead to other calls, so only a turn that has not begun may use them.
	repl.Task
	// Contexts are the inputs of the question. Snippets read them as context, context_1 and so on;
	// a prompt never contains a whole context.
	Contexts []Context
	// Functions are host functions that snippets may call. The prompt lists them.
	Functions []Function
	// Signal describes the task for the triggers of [github.com/rlmhq/rlm/hook.Output], which
	// measures the output itself.
	Signal run.Signal
	// Config contains the question, the models and the bounds. Ask sets its Inputs and Open from
	// the fields above, and its SQL from Options.SQL.
	Config run.Config
}

// Ask lets models answer a question: the root model writes snippets, the engine runs them, and the
// value that they pass to FINAL is the answer. The Outcome's status reports how the run ended; an
// exhausted budget is not an error. The error is a [*SetupError] if the run could not begin, the
// context's cause if the context ended, or the failure that ended the run.
func (e *Engine) Ask(ctx context.Context, task Task) (Outcome, error) {
	var outcome Outcome
	err := e.withTask(ctx, task, func(ctx context.Context, cfg run.Config) error {
		kept := keptRun{
			name: task.Name, loop: "run", title: cfg.Question, begun: task.Begun,
			contexts: listContexts(cfg.Inputs), notKept: task.NotKept,
		}
		return e.keepRun(ctx, kept, func(ctx context.Context) (_ ledger.Status, _ string, err error) {
			outcome, err = answer(ctx, cfg, task.Labels)
			return outcome.Status, outcome.Reason, err
		})
	})
	if err != nil && outcome.Status == "" {
		outcome.Status, outcome.Reason = ledger.StatusFailed, err.Error()
	}
	return outcome, err
}

// answer checks that the models are available and runs the loop.
func answer(ctx context.Context, cfg run.Config, labels map[string]string) (Outcome, error) {
	cfg.Progress = ledger.AddLabels(cfg.Progress, labels)
	if err := run.CheckModels(ctx, cfg); err != nil {
		return Outcome{}, refuse(ctx, err)
	}
	return run.Run(ctx, cfg)
}

// Estimate returns the calls, tokens and cost that a run of the task may need. It asks no model,
// and opens the contexts only to measure them. The error is a [*SetupError].
func (e *Engine) Estimate(ctx context.Context, task Task) (run.Estimate, error) {
	var estimate run.Estimate
	err := e.withTask(ctx, task, func(ctx context.Context, cfg run.Config) (err error) {
		estimate, err = run.EstimateRun(ctx, cfg)
		return refuse(ctx, err)
	})
	return estimate, err
}

// withTask opens a task's contexts, calls use, and closes them.
func (e *Engine) withTask(
	ctx context.Context, task Task, use func(context.Context, run.Config) error,
) (err error) {
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return refuse(ctx, err)
	}
	defer leave()

	in, err := openContexts(ctx, task.Contexts)
	if err != nil {
		return refuse(ctx, err)
	}
	defer func() { err = errors.Join(err, in.close()) }()

	cfg := task.Config
	if cfg.Tools, err = addFunctions(cfg.Tools, task.Functions); err != nil {
		return refuse(ctx, err)
	}
	cfg.Inputs = in.list
	cfg.Open = e.opener(task.Policy, task.Labels)
	cfg.SQL = e.sql

	return use(ctx, cfg)
}
