package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
)

// AnswerOutcome says how a run of [Engine.Answer] ended.
type AnswerOutcome = run.Outcome

// AnswerTask is a question about contexts, for models that write snippets.
type AnswerTask struct {
	// Contexts are the inputs of the question. Snippets read them as context, context_1 and
	// so on; they never enter a prompt as a whole.
	Contexts []Context
	// Functions are host functions that snippets may call. The prompt lists them.
	Functions []Function
	// Policy says which tiers may run the snippets.
	Policy Policy
	// Labels name the caller of the run: see [SessionConfig]. They are in its events, too.
	Labels map[string]string
	// Name makes the run durable. Its turns and the answers of its calls are kept in
	// Options.Store as they come. Answer goes on with an unfinished run of that name, and pays
	// for nothing twice but the calls that were in flight when the earlier process ended. The
	// contexts and the question must be those of the earlier call; other models lead to other
	// calls, so only a turn that has not begun can have them. Empty keeps nothing.
	Name string
	// Begun is what the caller keeps with a durable run, as JSON, such as how to begin it again.
	// The first Answer of the name sets it.
	Begun json.RawMessage
	// Signal describes the task for the triggers of [HookOutput], which measures the output
	// itself.
	Signal run.Signal
	// Config has the question, the models and the bounds. Answer sets its Inputs and Open
	// from the fields above.
	Config run.Config
}

// Answer lets models answer a question: the root model writes snippets, the engine runs
// them, and the value that they pass to FINAL is the answer. The Outcome's status says how
// the run ended; an exhausted budget is not an error. The error is a [*SetupError] if the
// run could not begin, the context's cause if the context ended, or the failure that ended
// the run.
func (e *Engine) Answer(ctx context.Context, task AnswerTask) (AnswerOutcome, error) {
	var outcome AnswerOutcome
	err := e.withTask(ctx, task, func(ctx context.Context, cfg run.Config) error {
		kept := keptRun{
			name: task.Name, loop: "run", title: cfg.Question, begun: task.Begun,
			contexts: listContexts(cfg.Inputs),
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

// answer checks that the models are available, and runs the loop.
func answer(ctx context.Context, cfg run.Config, labels map[string]string) (AnswerOutcome, error) {
	cfg.Progress = addLabels(cfg.Progress, labels)
	if err := checkRun(ctx, cfg); err != nil {
		return AnswerOutcome{}, refuse(ctx, err)
	}
	return run.Run(ctx, cfg)
}

// Estimate returns the calls, tokens and cost that a run of the task may need. It asks no
// model, and opens the contexts only to measure them. The error is a [*SetupError].
func (e *Engine) Estimate(ctx context.Context, task AnswerTask) (run.Estimate, error) {
	var estimate run.Estimate
	err := e.withTask(ctx, task, func(ctx context.Context, cfg run.Config) (err error) {
		estimate, err = run.EstimateRun(ctx, cfg)
		return refuse(ctx, err)
	})
	return estimate, err
}

// withTask opens a task's contexts, calls use, and closes them.
func (e *Engine) withTask(
	ctx context.Context, task AnswerTask, use func(context.Context, run.Config) error,
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

	return use(ctx, cfg)
}

// addLabels returns a progress function that adds labels to each event.
func addLabels(progress func(ledger.Event), labels map[string]string) func(ledger.Event) {
	if progress == nil || len(labels) == 0 {
		return progress
	}
	return func(e ledger.Event) {
		e.Labels = labels
		progress(e)
	}
}

// checkRun asks each server whether it serves its model, so that a run without one fails
// before it costs anything.
func checkRun(ctx context.Context, cfg run.Config) error {
	cfg = cfg.WithDefaults()
	names := slices.Concat([]string{cfg.Model, cfg.SubModel}, cfg.ByDepth, cfg.Allowed)
	for _, agent := range cfg.Agents {
		names = append(names, agent.Model)
	}
	return ledger.CheckModels(ctx, cfg.Models, cfg.Progress, names...)
}
