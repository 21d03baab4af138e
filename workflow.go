package rlm

import (
	"context"
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
	// Input is what the state begins with.
	Input map[string]any
	// Policy says which tiers may run the file's Python.
	Policy Policy
	// Labels say for whom the run works: see [SessionConfig]. Its events have them, too.
	Labels map[string]string
	// Config is the models and the bounds. Its Open is made of the fields above.
	Config workflow.Config
}

// Workflow runs the nodes of a file one after the other over one state. The Outcome's
// status says how the run ended, and how far it came. The error is a [*SetupError] if
// nothing was begun, with a line for each problem if the file is wrong; a
// [*workflow.NodeError] if a node could not do its work; the context's cause if it ended;
// or what broke. A budget that was used up is no error.
func (e *Engine) Workflow(ctx context.Context, task WorkflowTask) (WorkflowOutcome, error) {
	refused := func(err error) (WorkflowOutcome, error) {
		return WorkflowOutcome{Status: ledger.StatusFailed, Reason: err.Error()}, refuse(err)
	}
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return refused(err)
	}
	defer leave()

	cfg := task.Config
	cfg.Open = e.opener(task.Policy, task.Labels)
	cfg.Progress = addLabels(cfg.Progress, task.Labels)

	return task.File.Run(ctx, cfg, task.Input)
}

// ParseWorkflow reads a workflow file, which is called name in problems. Schemas may lie in
// the file's Folder, which is empty. The error has a line for each problem with the
// structure of the file; [CheckWorkflow] finds the other problems.
func ParseWorkflow(name string, source []byte) (*workflow.File, error) {
	return workflow.Parse(name, source)
}

// CheckWorkflow finds what is wrong with a workflow file, by line and column, and runs
// nothing. The error is the context's, or says that this machine cannot check templates.
func CheckWorkflow(ctx context.Context, file *workflow.File) (problems []string, err error) {
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

// ExplainWorkflow says more about an error of [Engine.Workflow] than its text: the traceback
// of the file's Python, and a line for each attempt of a loop that failed.
func ExplainWorkflow(err error) (traceback string, attempts []string) {
	var failed *workflow.NodeError
	if !errors.As(err, &failed) {
		return "", nil
	}
	for _, a := range failed.Attempts {
		line := fmt.Sprintf("attempt %d: score %.2f, errors: %d", a.Iteration, a.Score, len(a.Errors))
		attempts = append(attempts, line)
	}
	return failed.Traceback, attempts
}
