package rlm

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/workflow"
)

// WorkflowOutcome says how a run of [Engine.Workflow] ended.
type WorkflowOutcome = workflow.Outcome

// WorkflowTask is a workflow file and its input.
type WorkflowTask struct {
	// File is the workflow: see [workflow.Parse].
	File *workflow.File
	// Input is the initial state.
	Input map[string]any
	// Policy says which tiers may run the file's Python.
	Policy Policy
	// Name and Begun make the run durable, as those of [AnswerTask] do. A run that goes on
	// begins again, with the answers that are kept.
	Name  string
	Begun json.RawMessage
	// Labels name the caller of the run: see [SessionConfig]. They are in its events, too.
	Labels map[string]string
	// Config has the models and the bounds. Workflow sets its Open from the fields above.
	Config workflow.Config
}

// Workflow runs the nodes of a file one after the other over one state. The Outcome's
// status says how the run ended; its state has the results until then. The error is a
// [*SetupError] if the run could not begin, with a line for each problem in the file; a
// [*workflow.NodeError] if a node failed; the context's cause if the context ended; or the
// failure that ended the run. An exhausted budget is not an error.
func (e *Engine) Workflow(ctx context.Context, task WorkflowTask) (WorkflowOutcome, error) {
	refused := func(err error) (WorkflowOutcome, error) {
		return WorkflowOutcome{Status: ledger.StatusFailed, Reason: err.Error()}, refuse(ctx, err)
	}
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return refused(err)
	}
	defer leave()
	if task.File == nil {
		return refused(errNoWorkflow)
	}

	cfg := task.Config
	cfg.Open = e.opener(task.Policy, task.Labels)
	cfg.Progress = addLabels(cfg.Progress, task.Labels)

	kept := keptRun{name: task.Name, loop: "workflow", title: task.File.Title(), begun: task.Begun}
	var outcome WorkflowOutcome
	err = e.keepRun(ctx, kept, func(ctx context.Context) (_ ledger.Status, _ string, err error) {
		outcome, err = task.File.Run(ctx, cfg, task.Input)
		return outcome.Status, outcome.Reason, err
	})
	return outcome, err
}

var errNoWorkflow = errors.New("no workflow file: read one with workflow.Parse")
