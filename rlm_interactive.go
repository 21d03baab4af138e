package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Interactive is a session of a person, in which a model can be asked. The person's
// snippets can call models, too, within one budget for the session. It has one
// owner: its methods must not be called concurrently.
type Interactive struct {
	engine  *Engine
	task    Task
	inputs  *inputs
	session *repl.Session
	runner  *router.Runner
	host    *switchHost
	known   []tiers.Variable
}

// switchHost answers host calls for whoever has the turn: the person or a run.
type switchHost struct{ now atomic.Pointer[tiers.Host] }

// Call passes a call on.
func (h *switchHost) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	return (*h.now.Load()).Call(ctx, call)
}

// Interactive opens a session on the task's contexts. The task's Run says how a model
// is asked, later, by Ask; without Run.Models there is none.
func (e *Engine) Interactive(ctx context.Context, task Task) (*Interactive, error) {
	if err := task.Policy.Validate(); err != nil {
		return nil, &SetupError{err}
	}
	in, err := openContexts(ctx, task.Contexts)
	if err != nil {
		return nil, &SetupError{err}
	}
	i := &Interactive{engine: e, task: task, inputs: in.share(), host: &switchHost{}}
	tools, err := i.tools()
	if err != nil {
		return nil, errors.Join(&SetupError{err}, i.inputs.release())
	}
	i.session, err = repl.OpenSession(ctx, repl.SessionConfig{
		Open: i.open, Inputs: in.list, Tools: tools, Limits: task.Run.Limits, Deterministic: task.Run.Deterministic,
	})
	if err != nil {
		return nil, errors.Join(err, i.inputs.release())
	}
	return i, nil
}

// open makes the session's runner, with a host that a run can take over.
func (i *Interactive) open(ctx context.Context, cfg tiers.Config) (*router.Runner, error) {
	person := cfg.Host
	i.host.now.Store(&person)
	cfg.Host = i.host
	var err error
	i.runner, err = i.engine.Opener(i.task.Policy)(ctx, cfg)
	return i.runner, err
}

// tools are the functions of the person's snippets.
func (i *Interactive) tools() (*repl.Tools, error) {
	cfg := i.task.Run
	cfg.Inputs = i.inputs.list

	return cfg.SessionTools()
}

// Run runs a snippet of the person's. If the context ends, the snippet is interrupted
// and the session goes on with what it had made until then. The error is a
// [*tiers.BrokenError], which says what was lost where only a kill ended the snippet.
func (i *Interactive) Run(ctx context.Context, job tiers.Job) (Result, error) {
	result, err := i.runner.Run(ctx, job)
	if result.Variables != nil {
		i.known = result.Variables
	}
	return result, err
}

// Invalid returns what is wrong with a snippet's syntax, empty if nothing is.
func (i *Interactive) Invalid(ctx context.Context, source string) (string, error) {
	plan, err := i.runner.Explain(ctx, tiers.Job{Language: tiers.Python, Source: source})
	return plan.Invalid, err
}

// Variables are the names and kinds of the session's variables.
func (i *Interactive) Variables() []tiers.Variable { return i.known }

// Home is the tier in which the session's Python lives, empty before the first
// snippet.
func (i *Interactive) Home() string { return i.runner.Home(tiers.Python) }

// maxTold bounds how many variables a model is told of.
const maxTold = 200

// Ask has a model answer a question in a copy of the session: it finds all
// variables, and what it does to them is undone. An answer is bound to _answer.
func (i *Interactive) Ask(ctx context.Context, question string) (Outcome, error) {
	cfg := i.task.Run
	if cfg.Models == nil {
		return Outcome{}, &SetupError{errors.New("there is no model")}
	}
	cfg.Question, cfg.Inputs = question+i.told(), i.inputs.list
	person := i.host.now.Load()
	defer i.host.now.Store(person)
	var begun atomic.Bool
	cfg.Open = func(ctx context.Context, c tiers.Config) (*router.Runner, error) {
		if begun.Swap(true) {
			return i.engine.Opener(i.task.Policy)(ctx, c) // a sub-loop, with a namespace of its own
		}
		i.host.now.Store(&c.Host)
		return i.runner.Fork(ctx)
	}
	outcome, err := i.engine.solve(ctx, cfg)
	i.host.now.Store(person)
	if outcome.Answer != nil && err == nil {
		err = i.bind(ctx, outcome.Answer)
	}
	return outcome, err
}

// bind gives the person's session the answer. A JSON text is a Python one, too.
func (i *Interactive) bind(ctx context.Context, answer json.RawMessage) error {
	literal, err := json.Marshal(string(answer))
	if err != nil {
		return err
	}
	source := "def _answer():\n    import json\n    return json.loads(" + string(literal) + ")\n_answer = _answer()\n"
	result, err := i.runner.Run(ctx, tiers.Job{Source: source})
	if err == nil && result.Status != tiers.StatusOK {
		err = fmt.Errorf("cannot bind the answer: the snippet ended as %s", result.Status)
	}
	return err
}

// told names the variables to a model.
func (i *Interactive) told() string {
	if len(i.known) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nThe session has variables already: ")
	for n, v := range i.known {
		if n == maxTold {
			b.WriteString(", and more (SHOW_VARS() lists them)")
			break
		}
		if n > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s)", v.Name, v.Kind)
	}
	b.WriteString(".")
	return b.String()
}

// Close ends the session.
func (i *Interactive) Close() error {
	return errors.Join(i.runner.Close(), i.session.Close(), i.inputs.release())
}

// Explain returns where a snippet would run and why, and runs nothing.
func (i *Interactive) Explain(ctx context.Context, job tiers.Job) (router.Plan, error) {
	return i.runner.Explain(ctx, job)
}
