package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/workflow"
)

// WorkflowOutcome says how a run of [Engine.Workflow] ended.
type WorkflowOutcome = workflow.Outcome

// WorkflowTask is a workflow file and its input.
type WorkflowTask struct {
	// File is the workflow: see [ParseWorkflow].
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

var errNoWorkflow = errors.New("no workflow file: read one with ParseWorkflow")

// ParseWorkflow reads a workflow file. Problems refer to it as name. If its schemas are files,
// set the Folder of the result, which is empty. The error has a line for each problem with the
// structure of the file; [CheckWorkflow] finds the other problems.
func ParseWorkflow(name string, source []byte) (*workflow.File, error) {
	return workflow.Parse(name, source)
}

// CheckWorkflow returns the problems of a workflow file, by line and column. It runs nothing.
// The error is the context's, or says that this machine cannot check templates.
func CheckWorkflow(ctx context.Context, file *workflow.File) (problems []string, err error) {
	if file == nil {
		return nil, errNoWorkflow
	}
	err = file.Check(ctx)
	var found *workflow.FileError
	if !errors.As(err, &found) {
		return nil, err
	}
	for _, problem := range found.Problems {
		problems = append(problems, problem.String())
	}
	return problems, nil
}

// ExplainWorkflow returns details of an error of [Engine.Workflow]: the traceback of the
// file's Python, and a line for each attempt of a failed loop.
func ExplainWorkflow(err error) (traceback string, attempts []string) {
	var failed *workflow.NodeError
	if !errors.As(err, &failed) {
		return "", nil
	}
	for _, a := range failed.Attempts {
		line := fmt.Sprintf("attempt %d: score %.2f, errors: %d",
			a.Iteration, a.Score, len(a.Errors))
		attempts = append(attempts, line)
	}
	return failed.Traceback, attempts
}
