package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/inputs"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/schema"
)

// answerSub answers a query with a sub-loop, one level deeper.
func (l *loop) answerSub(
	ctx context.Context, q answers.Query, contract *schema.Contract,
) (json.RawMessage, error) {
	child := &loop{
		tree: l.tree, node: fmt.Sprintf("%s.%d", l.node, l.children.Add(1)), depth: l.depth + 1,
		model: q.Model, contract: contract, agent: q.Agent, scope: l.scope,
	}
	if _, configured := l.cfg.Agents[q.Agent]; configured {
		child.scope = q.Agent
	}
	if child.model == "" {
		child.model = l.cfg.modelAt(child.depth)
	}

	done, err := l.assignTask(ctx, child, q)
	if err != nil {
		return nil, err
	}
	if child.trace, err = l.trace.Child(); err != nil {
		return nil, errors.Join(err, done())
	}
	l.loops.Add(1)
	value, err := child.answer(ctx)
	return value, errors.Join(err, done(), child.trace.Close())
}

// assignTask gives a sub-loop its question and its context. Call done after the sub-loop ends.
func (l *loop) assignTask(
	ctx context.Context, child *loop, q answers.Query,
) (done func() error, err error) {
	if q.Context == nil {
		input, done, err := l.inputs.Open(ctx, q.Prompt)
		if err != nil {
			return nil, fmt.Errorf("the prompt: %w", err)
		}
		short, err := inputs.Shorten(ctx, input, longPrompt, shownOfPrompt)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the prompt: %w", err), done())
		}
		if short != "" {
			child.question, child.inputs = short, inputs.List{input}
			return done, nil
		}
		if err := done(); err != nil {
			return nil, err
		}
	}

	if child.question, err = l.inputs.Text(ctx, q.Prompt, maxQuestion); err != nil {
		return nil, fmt.Errorf("the prompt: %w", err)
	}
	if strings.TrimSpace(child.question) == "" {
		return nil, errors.New("the prompt is empty")
	}
	if q.Context == nil {
		return func() error { return nil }, nil
	}

	input, done, err := l.inputs.Open(ctx, q.Context)
	if err != nil {
		return nil, fmt.Errorf("the context: %w", err)
	}
	child.inputs = inputs.List{input}
	return done, nil
}

// answer runs a sub-loop and returns its answer to the caller.
func (l *loop) answer(ctx context.Context) (json.RawMessage, error) {
	begun := time.Now()
	l.tell(ledger.Event{Kind: ledger.EventLoopStarted, Model: l.model, Text: l.question})
	outcome, err := l.solve(ctx)
	if err == nil && outcome.Answer == nil {
		err = fmt.Errorf("the sub-task ended without an answer: %s", outcome.Reason)
	}

	e := ledger.Event{
		Kind: ledger.EventLoopEnded, Status: string(outcome.Status), Text: outcome.Text(),
		Elapsed: time.Since(begun),
	}

	call := ledger.SubCall{
		Model: l.model, Prompt: l.question, Response: outcome.Text(), Elapsed: e.Elapsed, Err: err,
		Agent: l.agent,
	}

	if err != nil {
		e.Error = err.Error()
	}
	l.tell(e)
	calls.RecordCall(ctx, call)
	if err != nil || l.contract != nil {
		return outcome.Answer, err
	}

	return json.Marshal(outcome.Text()) // without a contract the caller expects a string
}

// Sizes of sub-tasks, in characters.
const (
	maxQuestion   = 200_000 // maximum for a question with a context
	longPrompt    = 10_000  // a longer prompt without a context becomes the context
	shownOfPrompt = 2_000   // characters shown of each end of a long prompt
)
