package rlm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// offerModels lets the session's own snippets call models, within one budget for the
// session and its forks.
func (s *Session) offerModels() error {
	cfg := s.cfg.Ask.WithDefaults()
	if cfg.Models == nil || cfg.Model == "" {
		return nil
	}
	ledger, err := repl.NewLedger(cfg.Budget)
	if err != nil {
		return err
	}

	s.caller = &repl.Caller{
		Models: cfg.Models, Ledger: ledger, Gate: repl.NewGate(cfg.CallsAtOnce),
		MaxReply: cfg.MaxReply, Emit: labelled(cfg.Progress, s.cfg.Labels),
	}
	tools, err := s.modelTools()
	if err != nil {
		return err
	}
	for _, f := range tools.Functions() {
		if err := s.host.offer(f, tools.Call); err != nil {
			return err
		}
	}
	return nil
}

// modelTools returns the functions that call models. They know the contexts of now.
func (s *Session) modelTools() (*repl.Tools, error) {
	cfg := s.cfg.Ask.WithDefaults()
	answers := &repl.Answers{
		Caller: s.caller, Inputs: s.allInputs(), Node: "0", Turn: new(atomic.Int64),
		Model: cfg.SubModel, Models: []string{cfg.Model, cfg.SubModel}, Agents: cfg.Agents,
		CallsAtOnce: cfg.CallsAtOnce, Loops: repl.NewGate(cfg.LoopsAtOnce), Retries: cfg.Retries,
	}
	return cfg.Tools.With(answers.Functions()...)
}

// showModels makes contexts that were added known to the functions that call models.
func (s *Session) showModels() error {
	if s.caller == nil {
		return nil
	}
	tools, err := s.modelTools()
	if err != nil {
		return err
	}

	more := s.host.clone()
	for _, f := range tools.Functions() {
		more.byName[f.Name] = tools.Call
	}
	s.host = more
	return nil
}

// maxTold bounds how many variables a question lists.
const maxTold = 200

// Ask has a model answer a question, by the loop of [Engine.Answer], in a copy of the
// session: its snippets read and change all variables, and the session keeps its own. If
// there is an answer, Ask binds it to the variable _answer. [SessionConfig] Ask names the
// models. The errors are those of [Engine.Answer].
func (s *Session) Ask(ctx context.Context, question string) (AnswerOutcome, error) {
	cfg := s.cfg.Ask
	if cfg.Models == nil {
		return AnswerOutcome{}, &SetupError{errors.New("there is no model: name one")}
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return AnswerOutcome{}, err
	}
	defer leave()

	cfg.Question = question + s.listVariables()
	cfg.Inputs = s.allInputs()
	cfg.Limits, cfg.Deterministic = s.cfg.Limits, s.cfg.Deterministic
	if cfg.Limits.Output == 0 {
		cfg.Limits.Output = repl.DefaultOutput
	}
	if cfg.Tools, err = s.engine.tools(cfg.Tools, s.cfg.Functions); err != nil {
		return AnswerOutcome{}, &SetupError{err}
	}

	asked := &askedHost{}
	cfg.Open = s.openCopy(asked)
	outcome, err := s.engine.solve(context.WithValue(ctx, hostKey{}, tiers.Host(asked)), cfg, s.cfg.Labels)
	if outcome.Answer == nil || err != nil {
		return outcome, err
	}

	e := &exchange{name: answerVariable, value: tiers.Value(outcome.Answer)}
	if err := s.exchange(ctx, e, fmt.Sprintf("%s = %s(%q)", answerVariable, valueIn, answerVariable)); err != nil {
		return outcome, fmt.Errorf("cannot bind the answer: %w", err)
	}
	return outcome, nil
}

// answerVariable is bound to the last answer.
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

// openCopy returns an opener whose first runner is a copy of the session's. Further ones
// are of sub-loops, which have namespaces of their own.
func (s *Session) openCopy(asked *askedHost) repl.Opener {
	next := s.engine.opener(s.cfg.Policy, s.cfg.Labels)
	var begun atomic.Bool
	return func(ctx context.Context, cfg tiers.Config) (*router.Runner, error) {
		if begun.Swap(true) {
			return next(ctx, cfg)
		}

		runner, err := s.runner.Fork(ctx)
		if err != nil {
			return nil, err
		}
		var missing []tiers.Function
		for _, f := range cfg.Functions {
			if _, has := s.host.byName[f.Name]; !has {
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
