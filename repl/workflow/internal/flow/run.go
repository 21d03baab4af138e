package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/harness"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
)

// maxState bounds the state, in bytes of its JSON.
const maxState = 8 << 20

// Run checks the file and runs it over an input, whose members are the initial state.
//
// The error is a [*repl.SetupError] if the run could not begin (it wraps a [*FileError] if the
// file is at fault), a [*NodeError] if a node failed, the context's cause, or a description of
// another failure. Running out of budget is not an error. The Outcome holds the results up to the
// end of the run.
func (f *File) Run(ctx context.Context, cfg Config, input map[string]any) (Outcome, error) {
	r := &fileRun{file: f, given: cfg, outcome: Outcome{State: input}}
	err := harness.Run(ctx, r)
	if err != nil && r.outcome.Status == "" {
		r.outcome.Status, r.outcome.Reason = ledger.StatusFailed, err.Error()
	}

	return r.outcome, err
}

// fileRun implements [harness.Loop] for a run of a file.
type fileRun struct {
	*Run

	file    *File
	given   Config
	outcome Outcome
}

// Prepare checks the file and its models.
func (r *fileRun) Prepare(ctx context.Context) (plan harness.Plan, err error) {
	if r.Run, err = prepare(ctx, r.file, r.given, r.outcome.State); err != nil {
		return plan, err
	}

	text := r.file.Name
	if r.file.Title != "" {
		text += ": " + r.file.Title
	}

	return harness.Plan{
		Caller: r.caller, Folder: r.given.Trace,
		Started: ledger.Event{Model: r.cfg.Model, Text: text},
	}, nil
}

// Solve runs the nodes.
func (r *fileRun) Solve(ctx context.Context, trace *record.Trace) error {
	r.trace = trace
	r.begin(r.file)

	return errors.Join(r.nodes(ctx, r.file), r.Close())
}

// Conclude makes the outcome.
func (r *fileRun) Conclude(e *harness.Ending) ledger.Event {
	o := Outcome{Status: StatusDone, State: r.State, Result: r.result}
	if e.Status != "" && r.node != nil {
		o.Node = r.node.Name
	}
	switch {
	case e.Status == "":
	case e.Status != ledger.StatusFailed:
		o.Status, o.Reason = e.Status, e.Reason
	case isBroken(e.Err) || r.node == nil:
		o.Status, o.Reason = StatusBroken, e.Err.Error()
	default:
		e.Err = &NodeError{File: r.file.Name, Node: r.node.Name, Err: e.Err}
		o.Status, o.Reason = ledger.StatusFailed, e.Err.Error()
	}

	o.Spent, o.Budget, o.Elapsed, o.Trace = e.Spent, e.Budget, e.Elapsed, e.Folder
	r.outcome = o
	e.Err = errors.Join(e.Err, r.unwritten)

	return ledger.Event{Status: string(o.Status), Text: shown(o.Result), Error: o.Reason}
}

// Run is the run of a file, as its actions use it. Its methods are not safe for concurrent use.
type Run struct {
	// State holds the values that nodes share, by name; values are those of encoding/json.
	State map[string]any

	cfg     Config
	actions actionTable
	folder  string
	caller  *calls.Caller
	python  *loopsession.Session // nil before the first code

	node   *Node
	at     place
	result any

	trace     *record.Trace
	unwritten error // the reason why records of nodes could not be written
}

// NewRun returns a run without a file, for using actions from Go. Its initial State is state. It
// can use the actions of this package and more. The caller closes it.
func NewRun(cfg Config, state map[string]any, more ...Action) (*Run, error) {
	actions, err := newActionTable(more)
	if err != nil {
		return nil, &repl.SetupError{Err: err}
	}
	return newRun(cfg, state, actions)
}

// newRun is NewRun for the actions of a file.
func newRun(cfg Config, state map[string]any, actions actionTable) (*Run, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, &repl.SetupError{Err: err}
	}
	r := &Run{State: map[string]any{}, cfg: cfg, actions: actions, at: place{node: root}}
	r.caller, err = calls.NewCaller(calls.Caller{
		Models: cfg.Models, Gate: calls.NewGate(cfg.CallsAtOnce), MaxReply: cfg.MaxReply,
		Emit: cfg.Progress,
	}, cfg.Budget, nil, false)
	if err != nil {
		return nil, &repl.SetupError{Err: err}
	}
	if err := r.Set(state); err != nil {
		return nil, &repl.SetupError{Err: fmt.Errorf("cannot use the input: %w", err)}
	}

	return r, nil
}

// prepare makes all checks that need no model and no sandbox.
func prepare(ctx context.Context, f *File, cfg Config, input map[string]any) (*Run, error) {
	r, err := newRun(cfg, input, f.actions)
	if err != nil {
		return nil, err
	}
	r.folder = f.Folder
	if err := f.Check(ctx); err != nil {
		return nil, err
	}
	if err := r.checkModels(ctx, f, cfg.Budget.USD != 0); err != nil {
		return nil, err
	}

	return r, nil
}

// checkModels looks up every model that the file names and asks its server whether the model
// exists.
func (r *Run) checkModels(ctx context.Context, f *File, explicitUSD bool) error {
	var wrong []*Problem
	names := map[string]bool{}
	checked := f.checked()
	for _, at := range checked.models {
		name, err := r.cfg.resolve(at.Text)
		if err != nil {
			wrong = append(wrong, &Problem{Line: at.Line, Column: at.Column, Message: err.Error()})
			continue
		}
		names[name] = true
	}

	if len(wrong) == 0 && len(checked.asks) > 0 && len(r.cfg.allowed()) == 0 {
		at := checked.asks[0]
		wrong = append(wrong, &Problem{Line: at.Line, Column: at.Column, Message: noModel})
	}
	if err := fileError(f.Name, wrong); err != nil {
		return err
	}
	if r.cfg.Model != "" {
		names[r.cfg.Model] = true
	}
	if len(names) > 0 && r.cfg.Models == nil {
		return errors.New("no registry of models: set Config.Models")
	}

	all := slices.Sorted(maps.Keys(names))
	for _, name := range all {
		if err := r.caller.CheckModel(name, explicitUSD); err != nil {
			return fmt.Errorf("cannot use model %s: %w", name, err)
		}
	}

	if len(all) == 0 {
		return nil
	}

	return ledger.CheckModels(ctx, r.cfg.Models, r.cfg.Progress, all...)
}

// nodes runs all nodes, one after another.
func (r *Run) nodes(ctx context.Context, f *File) error {
	for i, n := range f.Nodes {
		if err := r.enter(n, i+1); err != nil {
			r.node = nil
			return err
		}
		err := r.one(runlog.EnterTurn(ctx, i+1), n)
		if r.leave(ctx, err); err != nil {
			return err
		}
		if err := runlog.EndTurn(ctx, i+1); err != nil {
			return err
		}
	}

	r.node = nil
	return nil
}

// one runs one node and puts its result into the state.
func (r *Run) one(ctx context.Context, n *Node) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var result any
	var err error
	if n.Uses != "" {
		var with map[string]any
		if n.With != nil {
			with, _ = n.With.Plain().(map[string]any)
		}
		result, err = r.Act(ctx, n.Uses, with)
	} else {
		result, err = r.Python(ctx, Code{
			Source: n.Run, What: "run", Name: n.Name, Values: map[string]any{"state": r.State},
		})
	}

	if err != nil {
		return err
	}
	r.result = result
	if n.Output != "" {
		return r.Set(map[string]any{n.Output: result})
	}

	members, ok := result.(map[string]any)
	if !ok && result != nil {
		return fmt.Errorf(
			"the result is %s, which has no names: give the node an output, or return an object",
			described(result),
		)
	}

	return r.Set(members)
}

// Set puts values into the state, in their JSON form. The error means that the state would be too
// large.
func (r *Run) Set(values map[string]any) error {
	next := maps.Clone(r.State)
	maps.Copy(next, values)
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("the state cannot be encoded: %w", err)
	}

	if len(data) > maxState {
		return fmt.Errorf(
			"the state would have %d bytes, more than %d: store less in it", len(data), maxState,
		)
	}

	plain, err := Decode(data)
	if err != nil {
		return err
	}
	r.State, _ = plain.(map[string]any)
	return nil
}

// Drop removes a member of the state.
func (r *Run) Drop(name string) {
	r.State = maps.Clone(r.State)
	delete(r.State, name)
}

// Close ends the session of the code, if there is one.
func (r *Run) Close() error {
	if r.python == nil {
		return nil
	}
	return r.python.Close()
}

// described returns the kind of a value in words.
func described(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a text"
	case bool:
		return "true or false"
	}

	return "a number"
}
