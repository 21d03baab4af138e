package rlm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// modelTools makes the host functions with which snippets call models. Their sub-loops receive the
// inputs and the tools.
type modelTools func(inputs []tiers.Input, tools *repl.Tools) (*repl.Tools, error)

// modelTools returns the constructor of a session's model functions. The session and its forks
// share one budget for their calls.
func (e *Engine) modelTools(cfg SessionConfig) (modelTools, error) {
	ask := cfg.Ask
	ask.Open = e.opener(cfg.Policy, cfg.Labels)
	ask.SQL = e.sql
	ask.Limits, ask.Deterministic = cfg.Limits, cfg.Deterministic
	ask.Progress = ledger.AddLabels(ask.Progress, cfg.Labels)

	return ask.SessionTools()
}

// maxListed is the maximum number of variables that a question lists.
const maxListed = 200

// Ask asks a model a question with the loop of [Engine.Ask], in a copy of the session. The loop's
// snippets read and change all variables of the copy; the session itself changes only if
// [SessionConfig] sets Keep. Ask binds the answer, if any, to the variable _answer.
// SessionConfig.Ask names the models. The errors are those of [Engine.Ask].
func (s *Session) Ask(ctx context.Context, question string) (Outcome, error) {
	refused := func(err error) (Outcome, error) {
		return Outcome{Status: ledger.StatusFailed, Reason: err.Error()}, refuse(ctx, err)
	}
	cfg := s.cfg.Ask
	if cfg.Models == nil {
		return refused(errors.New("no model: set Ask.Models in SessionConfig"))
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return refused(err)
	}
	defer leave()

	if err := s.clearAnswer(ctx); err != nil {
		return refused(err)
	}
	cfg.Question, cfg.Notes = question, s.describe()
	cfg.Inputs = s.allInputs()
	cfg.Limits, cfg.Deterministic = s.cfg.Limits, s.cfg.Deterministic
	if cfg.Limits.Output == 0 {
		cfg.Limits.Output = repl.DefaultOutput
	}
	cfg.Tools = s.host.own
	cfg.Bypass = -1 // only the loop reaches the variables

	asked := &askedHost{}
	cfg.Open = s.openAsked(asked)
	cfg.SQL = s.engine.sql
	outcome, err := answer(context.WithValue(ctx, hostKey{}, tiers.Host(asked)), cfg, s.cfg.Labels)
	if s.cfg.Keep && err == nil {
		err = s.addHistory(ctx, outcome.Messages)
	}
	if outcome.Answer == nil || err != nil {
		return outcome, err
	}

	e := &exchange{name: answerVariable, value: outcome.Answer}
	source := fmt.Sprintf("%s = %s(%q)", answerVariable, valueIn, answerVariable)
	if err := s.exchange(ctx, e, source); err != nil {
		return outcome, fmt.Errorf("cannot bind the answer: %w", err)
	}
	return outcome, nil
}

// answerVariable is the name of the variable that holds the last answer.
const answerVariable = "_answer"

// askedHost answers the host calls of a loop in a copy of the session.
type askedHost struct{ now atomic.Pointer[tiers.Host] }

// Call forwards a call to the loop's current host.
func (h *askedHost) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	host := h.now.Load()
	if host == nil {
		return nil, fmt.Errorf("this session has no function %q", call.Function)
	}
	return (*host).Call(ctx, call)
}

// openAsked returns an opener that first returns the session's runner or a copy of it. Later calls,
// by sub-loops, return runners with new namespaces.
func (s *Session) openAsked(asked *askedHost) repl.Opener {
	next := s.engine.opener(s.cfg.Policy, s.cfg.Labels)
	var begun atomic.Bool
	return func(ctx context.Context, cfg tiers.Config) (repl.Runner, error) {
		if begun.Swap(true) {
			return next(ctx, cfg)
		}

		// A loop whose question is too long starts over, with the question as an input.
		ended := func() { begun.Store(false) }
		runner, err := s.chooseRunner(ctx, cfg.Limits, ended)
		if err != nil {
			return nil, err
		}
		more := cfg.Inputs[len(s.allInputs()):]
		if s.cfg.Keep && len(more) > 0 {
			return nil, errors.New("the question is too long for the model's window: " +
				"add the text as a context")
		}
		var missing []tiers.Function
		for _, f := range cfg.Functions {
			if !s.host.has(f.Name) {
				missing = append(missing, f)
			}
		}
		if err := runner.Extend(ctx, more, missing); err != nil {
			return nil, errors.Join(err, runner.Close())
		}
		asked.now.Store(&cfg.Host)
		return runner, nil
	}
}

// extendableRunner is a loop's runner that accepts additional functions.
type extendableRunner interface {
	repl.Runner
	Extend(ctx context.Context, inputs []tiers.Input, functions []tiers.Function) error
}

// chooseRunner returns a copy of the session's runner, or the runner itself if the session is a
// conversation. When the loop closes the runner, ended is called.
func (s *Session) chooseRunner(
	ctx context.Context, limits tiers.Limits, ended func(),
) (extendableRunner, error) {
	if s.cfg.Keep {
		return keptRunner{s.runner, s, ended}, nil
	}
	release, err := s.engine.budget.admit(limits)
	if err != nil {
		return nil, err
	}
	fork, err := s.runner.Fork(ctx)
	if err != nil {
		release()
		return nil, err
	}
	return loopRunner{fork, s.engine.slots, func() { ended(); release() }}, nil
}

// listVariables lists the session's variables in the format of a loop's prompt.
func (s *Session) listVariables() string {
	known := s.Variables()
	if len(known) == 0 {
		return ""
	}

	var b strings.Builder
	b.WriteString("The session has variables already: ")
	for n, v := range known {
		if n == maxListed {
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
