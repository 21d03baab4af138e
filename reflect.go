package rlm

import (
	"context"
	"encoding/json"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflect"
)

// ReflectOutcome says how a run of [Engine.Reflect] ended.
type ReflectOutcome = reflect.Outcome

// ReflectTask is the record of an agent's work, in which a model looks for lessons.
type ReflectTask struct {
	// Subject is the record: see [reflect.ParseTrace].
	Subject reflect.Subject
	// Policy says which tiers may run the snippets.
	Policy Policy
	// Name and Begun make the run durable, as those of [AnswerTask] do. A run that goes on
	// begins again, with the answers that are kept.
	Name  string
	Begun json.RawMessage
	// Labels name the caller of the run: see [SessionConfig]. They are in its events, too.
	Labels map[string]string
	// Config has the models and the bounds. Reflect sets its Open from the fields above.
	Config reflect.Config
}

// Reflect lets a model explore a record with snippets, which the engine runs, until the model
// hands over its analysis. The Outcome's status says how the run ended; an exhausted budget
// and exhausted iterations are not errors. The error is a [*SetupError] if the run could not
// begin, the context's cause if the context ended, or the failure that ended the run.
func (e *Engine) Reflect(ctx context.Context, task ReflectTask) (ReflectOutcome, error) {
	refused := func(err error) (ReflectOutcome, error) {
		return ReflectOutcome{Status: ledger.StatusFailed, Reason: err.Error()}, refuse(ctx, err)
	}
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return refused(err)
	}
	defer leave()

	cfg := task.Config
	cfg.Progress = addLabels(cfg.Progress, task.Labels)
	err = ledger.CheckModels(ctx, cfg.Models, cfg.Progress, cfg.Model, cfg.SubagentModel)
	if err != nil {
		return refused(err)
	}
	cfg.Open = e.opener(task.Policy, task.Labels)

	kept := keptRun{
		name: task.Name, loop: "reflect", title: task.Subject.Question, begun: task.Begun,
	}
	var outcome ReflectOutcome
	err = e.keepRun(ctx, kept, func(ctx context.Context) (_ ledger.Status, _ string, err error) {
		outcome, err = reflect.Run(ctx, cfg, task.Subject)
		return outcome.Status, outcome.Reason, err
	})
	return outcome, err
}
