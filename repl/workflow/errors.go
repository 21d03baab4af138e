package workflow

import (
	"errors"
	"strings"

	"github.com/rlmhq/rlm/repl/workflow/internal/correct"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

// Problem is one mistake in a file.
type Problem struct {
	// File is the file's name, Line and Column the position, from 1.
	File         string
	Line, Column int
	Message      string
}

// String returns "file:line:column: message".
func (p *Problem) String() string {
	return (*flow.Problem)(p).String()
}

// FileError lists all problems of a file, in order of position.
type FileError struct{ Problems []*Problem }

// Error returns a line for each problem.
func (e *FileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// NodeError reports that a node failed because of the file, its code or a model. It ends the
// run.
type NodeError struct {
	File, Node string
	// Traceback is the traceback of the file's Python code; empty if it did not raise.
	Traceback string
	// Attempts holds the attempts of a loop that failed because no output was valid.
	Attempts []Attempt
	// Err is the reason.
	Err error
}

// Attempt is one output of a loop and its verdict.
type Attempt struct {
	Iteration int // from 1
	Output    any
	Score     float64 // from 0 to 1
	Valid     bool
	Errors    []any
}

// Error names the file, the node and the reason.
func (e *NodeError) Error() string {
	return (&flow.NodeError{File: e.File, Node: e.Node, Err: e.Err}).Error()
}

// Unwrap returns the reason.
func (e *NodeError) Unwrap() error { return e.Err }

// published is an error of package flow together with its public form.
type published struct {
	error

	public error
}

// Unwrap returns both errors.
func (p *published) Unwrap() []error { return []error{p.error, p.public} }

// publishProblems returns problems in their public form.
func publishProblems(problems []*flow.Problem) []*Problem {
	public := make([]*Problem, len(problems))
	for i, p := range problems {
		problem := Problem(*p)
		public[i] = &problem
	}
	return public
}

// publish adds the public form to an error of package flow.
func publish(err error) error {
	var file *flow.FileError
	if errors.As(err, &file) {
		return &published{err, &FileError{publishProblems(file.Problems)}}
	}

	var node *flow.NodeError
	if !errors.As(err, &node) {
		return err
	}

	out := &NodeError{File: node.File, Node: node.Node, Err: node.Err}
	var ended *flow.ProgramError
	if errors.As(err, &ended) {
		out.Traceback = ended.Traceback
	}

	var failed *correct.FailedError
	if errors.As(err, &failed) {
		for _, a := range failed.History {
			out.Attempts = append(out.Attempts, Attempt{
				Iteration: a.Iteration, Output: a.Output, Score: a.Score, Valid: a.Valid, Errors: a.Errors,
			})
		}
	}

	return &published{err, out}
}
