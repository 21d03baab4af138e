package reflect

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/skillbook"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/harness"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// Outcome is the result of a reflection.
type Outcome struct {
	Status ledger.Status `json:"status"`
	// Output is the analysis, with StatusAnswered and StatusSynthesised. Otherwise it explains
	// why there is none, and its Raw has "timeout": true unless there was an error.
	Output Analysis `json:"output"`
	// Reason explains in one sentence why the status is not answered.
	Reason string `json:"reason,omitempty"`
	// Iterations counts the iterations.
	Iterations int `json:"iterations"`
	// Spent is the part of Budget that the reflector and its helpers used.
	Spent   ledger.Spending `json:"spent"`
	Budget  ledger.Budget   `json:"budget"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	// Trace is the folder of the record; empty if there is none.
	Trace string `json:"trace,omitempty"`
}

// loop is one reflection.
type loop struct {
	cfg     Config
	subject Subject
	prompt  string // the first message
	caller  *calls.Caller
	helper  *helper
	trace   *record.Trace

	session  *loopsession.Session
	executor turns.Executor
	turn     atomic.Int64
	log      []iterationRecord
}

// Run reflects on a subject. The error is a [*repl.SetupError] if the run could not begin, the
// context's cause, or a description of the failure; the Outcome then holds the results up to that
// point. Running out of iterations or budget is not an error.
func Run(ctx context.Context, cfg Config, subject Subject) (Outcome, error) {
	r := &reflection{given: cfg, on: subject}
	err := harness.Run(ctx, r)
	if err != nil && r.outcome.Status == "" {
		r.outcome.Status, r.outcome.Reason = ledger.StatusFailed, err.Error()
	}
	return r.outcome, err
}

// reflection implements [harness.Loop] for a run.
type reflection struct {
	*loop

	given   Config
	on      Subject
	outcome Outcome
}

// Prepare checks the configuration.
func (r *reflection) Prepare(context.Context) (plan harness.Plan, err error) {
	if r.loop, err = prepare(r.given, r.on); err != nil {
		return plan, err
	}

	return harness.Plan{
		Caller: r.caller, Folder: r.cfg.Trace,
		Started: ledger.Event{Model: r.cfg.Model, Text: preview(r.subject.Question)},
	}, nil
}

// Solve runs the iterations.
func (r *reflection) Solve(ctx context.Context, trace *record.Trace) (err error) {
	r.trace = trace
	r.outcome, err = r.solve(ctx)
	return err
}

// Conclude completes the outcome.
func (r *reflection) Conclude(e *harness.Ending) ledger.Event {
	o := &r.outcome
	if e.Status != "" {
		o.Status, o.Reason = e.Status, e.Reason
	}
	e.Err = errors.Join(e.Err, r.finish(o))
	o.Spent, o.Budget, o.Elapsed, o.Trace = e.Spent, e.Budget, e.Elapsed, e.Folder
	o.Iterations = len(r.log)

	return ledger.Event{
		Turn: int(r.turn.Load()), Status: string(o.Status), Text: o.Output.KeyInsight,
		Error: o.Reason,
	}
}

// prepare makes all checks that need no model and no sandbox.
func prepare(cfg Config, subject Subject) (*loop, error) {
	strictUSD := cfg.Budget.USD != 0
	skills, err := skillbook.Render(subject.Skillbook)
	if err != nil {
		return nil, err
	}
	subject.Skillbook = skills
	l := &loop{cfg: cfg.withDefaults(), subject: subject}
	if err := l.cfg.validate(); err != nil {
		return nil, err
	}
	if l.prompt, err = fill(l.cfg.PromptTemplate, variables(&subject)); err != nil {
		return nil, err
	}
	l.prompt += describeTools(l.cfg.Tools)

	l.caller, err = calls.NewCaller(calls.Caller{
		Models: l.cfg.Models, Gate: calls.NewGate(l.cfg.CallsAtOnce),
		MaxReply: l.cfg.MaxReply, Emit: l.cfg.Progress, KeptCalls: l.cfg.callsForSynthesis(),
	}, l.cfg.Budget, l.cfg.models(), strictUSD)
	if err != nil {
		return nil, err
	}
	l.helper = newHelper(&l.cfg, l.caller)
	l.helper.Turn = &l.turn
	return l, nil
}

// solve iterates until an analysis is accepted or the iterations are used up.
func (l *loop) solve(ctx context.Context) (outcome Outcome, err error) {
	if l.session, err = l.open(ctx); err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, l.session.Close()) }()
	l.executor = turns.Executor{Session: l.session, Tell: l.tell, Limits: l.cfg.Limits}
	l.trace.Begin(l.metadata())
	it := iteration{messages: []llm.Message{{Role: llm.RoleUser, Content: l.prompt}}}
	for it.index < l.cfg.MaxIterations {
		l.turn.Store(int64(it.index + 1))
		if used := l.usedUp(); used != nil {
			return l.conclude(ctx, it, used)
		}
		l.tell(ledger.Event{Kind: ledger.EventTurnStarted, Model: l.cfg.Model})
		begun, before := time.Now(), it
		it, err = l.iterate(runlog.EnterTurn(ctx, it.index+1), it)
		if it.response != "" || err == nil {
			l.note(it, begun)
		}
		var used *ledger.BudgetError
		switch {
		case errors.As(err, &used) && ctx.Err() == nil && !l.cfg.NoSynthesis:
			return l.conclude(ctx, before, used)
		case err != nil:
			return outcome, err
		case it.terminated:
			l.tell(ledger.Event{Kind: ledger.EventAnswer, Text: it.reflection.KeyInsight})
			return Outcome{Status: ledger.StatusAnswered, Output: *it.reflection}, nil
		}
		it = it.next()
		if err := runlog.EndTurn(ctx, it.index); err != nil {
			return outcome, err
		}
	}

	return l.synthesize(ctx, it, fmt.Sprintf("the %d iterations were used up", l.cfg.MaxIterations))
}

// ask asks the reflector's model.
func (l *loop) ask(
	ctx context.Context, purpose string, messages []llm.Message,
) (llm.Response, error) {
	a := calls.Ask{
		Node: "0", Turn: int(l.turn.Load()), Purpose: purpose, Model: l.cfg.Model,
		Messages: messages, Last: purpose == synthesisPurpose,
	}

	if l.cfg.Stream && l.cfg.Progress != nil {
		a.Stream = func(delta string) { l.tell(ledger.Event{Kind: ledger.EventDelta, Model: l.cfg.Model, Text: delta}) }
	}
	response, err := l.caller.Complete(ctx, a)
	if err == nil {
		err = calls.CheckRefusal(l.cfg.Model, response)
	}
	return response, err
}

func (l *loop) metadata() trajectory.Metadata {
	return trajectory.Metadata{
		RootModel: l.cfg.Model, MaxDepth: 1, MaxIterations: l.cfg.MaxIterations,
		EnvironmentType: "rr", OtherBackends: l.cfg.models(),
	}
}

// tell emits an event of this loop.
func (l *loop) tell(e ledger.Event) {
	e.Node, e.Turn = "0", int(l.turn.Load())
	l.caller.Tell(e)
}
