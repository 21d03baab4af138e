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

// modelTools returns a function that makes the host functions with which snippets call
// models. The session and its forks share one budget for the calls.
func modelTools(cfg SessionConfig) (func([]tiers.Input) (*repl.Tools, error), error) {
	ask := cfg.Ask
	if ask.WithDefaults().Model == "" || ask.Models == nil {
		return func([]tiers.Input) (*repl.Tools, error) { return nil, nil }, nil //nolint:nilnil // none
	}
	ask.Tools, ask.Progress = nil, addLabels(ask.Progress, cfg.Labels)
	return ask.SessionTools()
}

// maxListed bounds how many variables a question lists.
const maxListed = 200

// Ask lets a model answer a question, with the loop of [Engine.Answer], in a copy of the
// session: snippets of the loop read and change all variables there, and the session stays
// unchanged. Ask binds the answer, if there is one, to the variable _answer. Ask in
// [SessionConfig] names the models. The errors are those of [Engine.Answer].
func (s *Session) Ask(ctx context.Context, question string) (AnswerOutcome, error) {
	refused := func(err error) (AnswerOutcome, error) {
		return AnswerOutcome{Status: ledger.StatusFailed, Reason: err.Error()}, refuse(ctx, err)
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

	cfg.Question = question + s.listVariables()
	cfg.Inputs = s.allInputs()
	cfg.Limits, cfg.Deterministic = s.cfg.Limits, s.cfg.Deterministic
	if cfg.Limits.Output == 0 {
		cfg.Limits.Output = repl.DefaultOutput
	}
	cfg.Tools = s.host.own
	cfg.Bypass = -1 // only the loop reaches the variables

	asked := &askedHost{}
	cfg.Open = s.openCopy(asked)
	outcome, err := answer(context.WithValue(ctx, hostKey{}, tiers.Host(asked)), cfg, s.cfg.Labels)
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

// answerVariable is the name of the variable with the last answer.
const answerVariable = "_answer"

// askedHost answers the host calls of a loop in a copy of the session.
type askedHost struct{ now atomic.Pointer[tiers.Host] }

// Call passes a call on.
func (h *askedHost) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	host := h.now.Load()
	if host == nil {
		return nil, fmt.Errorf("this session has no function %q", call.Function)
	}
	return (*host).Call(ctx, call)
}

// openCopy returns an opener whose first runner is a copy of the session's. Sub-loops open
// the further ones, with new namespaces.
func (s *Session) openCopy(asked *askedHost) repl.Opener {
	next := s.engine.opener(s.cfg.Policy, s.cfg.Labels)
	var begun atomic.Bool
	return func(ctx context.Context, cfg tiers.Config) (repl.Runner, error) {
		if begun.Swap(true) {
			return next(ctx, cfg)
		}

		release, err := s.engine.budget.admit(cfg.Limits)
		if err != nil {
			return nil, err
		}
		fork, err := s.runner.Fork(ctx)
		if err != nil {
			release()
			return nil, err
		}
		runner := loopRunner{fork, s.engine.turns, release}
		var missing []tiers.Function
		for _, f := range cfg.Functions {
			if !s.host.has(f.Name) {
				missing = append(missing, f)
			}
		}
		if err := runner.Extend(ctx, nil, missing); err != nil {
			return nil, errors.Join(err, runner.Close())
		}
		asked.now.Store(&cfg.Host)
		return runner, nil
	}
}

// listVariables names the session's variables, as a question shows them.
func (s *Session) listVariables() string {
	known := s.Variables()
	if len(known) == 0 {
		return ""
	}

	var b strings.Builder
	b.WriteString("\n\nThe session has variables already: ")
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
