package reflexion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/bm25"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
)

// loop is one run.
type loop struct {
	cfg      Config
	caller   *repl.Caller
	contract *schema.Contract
	evidence *evidence
	trace    *repl.Trace
	result   Result
	turn     int
}

// node is the place of the one loop in its tree.
const node = "0"

// Run drafts, judges and revises until a draft passes or something is used up. It
// returns an error for a configuration that makes no sense, before any work (the
// Result's Elapsed is then 0), for what broke on the way, and for the context's end;
// the Result then holds the last draft and how far the run came, so that a caller can
// fall back on it or on a plain call. A budget that was used up is no error.
func Run(ctx context.Context, cfg Config) (Result, error) {
	l, err := prepare(ctx, cfg)
	if err != nil {
		return Result{Iterations: []Iteration{}, Status: StatusFailed, Reason: err.Error()}, err
	}
	ctx, cancel := l.caller.Ledger.Within(ctx)
	defer cancel()
	r := &l.result
	if err = l.solve(ctx); err != nil {
		r.Status, r.Reason, err = repl.Ended(ctx, err)
	}
	r.Spent, r.Budget, r.Elapsed = l.caller.Ledger.Spent(), l.caller.Ledger.Budget(), l.caller.Ledger.Elapsed()
	r.TotalLLMCalls, r.TotalTokens = r.Spent.Calls, r.Spent.InputTokens+r.Spent.OutputTokens
	r.Success = r.Status == StatusPassed
	l.tell(repl.Event{
		Kind: repl.EventRunEnded, Status: string(r.Status), Text: r.FinalDraft, Error: r.Reason, Elapsed: r.Elapsed, Spent: &r.Spent,
	})
	return l.result, errors.Join(err, l.trace.Close())
}

// prepare checks all that can be checked before any work, and reads the files.
func prepare(ctx context.Context, cfg Config) (*loop, error) {
	strictUSD := cfg.Budget.USD != 0
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	contract, err := critiqueContract()
	if err != nil {
		return nil, err
	}
	l := &loop{cfg: cfg, contract: contract, result: Result{Iterations: []Iteration{}, Trace: cfg.Trace}}
	l.caller, err = repl.NewCaller(repl.Caller{
		Models: cfg.Models, Gate: repl.NewGate(cfg.CallsAtOnce), MaxReply: cfg.MaxReply, Emit: cfg.Progress,
	}, cfg.Budget, []string{cfg.Model, cfg.JudgeModel}, strictUSD)
	if err != nil {
		return nil, err
	}
	var library *bm25.Library
	if len(cfg.Paths) > 0 {
		if library, err = bm25.Open(ctx, cfg.Paths, bm25.Bounds{}); err != nil {
			return nil, err
		}
	}
	l.evidence = newEvidence(cfg.Task, &cfg.Memory, library)
	l.trace, err = l.caller.Record(cfg.Trace)
	return l, err
}

// solve runs the iterations and says by the status how they ended. An error is what
// ended them early.
func (l *loop) solve(ctx context.Context) error {
	l.begin()
	var critique *Critique
	for l.turn = 1; l.turn <= l.cfg.MaxIterations; l.turn++ {
		begun := time.Now()
		l.tell(repl.Event{Kind: repl.EventTurnStarted, Model: l.cfg.Model})
		sent, response, err := l.write(ctx, critique)
		if err != nil {
			return err
		}
		draft := l.result.FinalDraft
		l.result.Iterations = append(l.result.Iterations, Iteration{
			Number: l.turn, Draft: draft, Evidence: l.evidence.gather(draft, critique), Revised: l.turn > 1,
		})
		now := &l.result.Iterations[l.turn-1]
		now.Critique, err = l.judge(ctx, now, response.Finish == llm.FinishLength)
		l.record(sent, now, begun)
		if err != nil {
			return err
		}
		critique = now.Critique
		if critique.Passes {
			l.result.Status = StatusPassed
			l.tell(repl.Event{Kind: repl.EventAnswer, Text: draft})
			return nil
		}
		if !critique.blocked() {
			l.result.Status, l.result.Reason = StatusUnjudged, "the draft "+critique.String()
			return nil
		}
	}
	l.turn = l.cfg.MaxIterations
	l.result.Status = StatusRejected
	l.result.Reason = fmt.Sprintf("after %d of %d iterations the draft %s", l.turn, l.cfg.MaxIterations, critique)
	return nil
}

// begin opens the record.
func (l *loop) begin() {
	l.trace.Begin(repl.Metadata{
		RootModel: l.cfg.Model, MaxIterations: l.cfg.MaxIterations, EnvironmentType: "reflexion",
		EnvironmentKwargs: map[string]any{"judges": l.cfg.Judges}, OtherBackends: []string{l.cfg.JudgeModel},
	})
	l.tell(repl.Event{Kind: repl.EventRunStarted, Model: l.cfg.Model, Text: l.cfg.Task})
	if l.evidence.library == nil {
		return
	}
	if left := l.evidence.library.Skipped().String(); left != "" {
		l.tell(repl.Event{Kind: repl.EventWarning, Purpose: "evidence", Error: "files not searched for evidence: " + left})
	}
}

// material is what every prompt of this iteration shows.
func (l *loop) material(found []Evidence) shown {
	m := &l.cfg.Memory
	return shown{
		Task: l.cfg.Task, History: m.recent(), Facts: m.Facts, Procedures: m.Procedures, Passages: found[len(l.evidence.memory):],
		Contract: l.contract.Describe(),
	}
}

// write asks for the first draft, or for its revision after a critique, and keeps it
// as the final one so far.
func (l *loop) write(ctx context.Context, critique *Critique) (sent []llm.Message, response llm.Response, err error) {
	data := l.material(l.evidence.gather(l.result.FinalDraft, critique))
	purpose := "draft"
	if critique != nil {
		purpose, data.Draft, data.Issues = "revision", l.result.FinalDraft, critique.Issues
	}
	if sent, err = messages("writer", purpose, data); err != nil {
		return nil, response, err
	}
	ask := repl.Ask{Node: node, Turn: l.turn, Purpose: purpose, Model: l.cfg.Model, Messages: sent}
	if l.cfg.Stream && l.cfg.Progress != nil {
		ask.Stream = func(delta string) {
			l.tell(repl.Event{Kind: repl.EventDelta, Purpose: purpose, Model: l.cfg.Model, Text: delta})
		}
	}
	if response, err = l.caller.Complete(ctx, ask); err != nil {
		return sent, response, err
	}
	draft := strings.TrimSpace(strings.ToValidUTF8(response.Text, "\uFFFD"))
	if declined := repl.Declined(l.cfg.Model, response); declined != nil {
		return sent, response, declined
	}
	if draft == "" {
		return sent, response, fmt.Errorf("the model %s gave an empty draft", l.cfg.Model)
	}
	l.result.FinalDraft = draft
	return sent, response, nil
}

// cutShort is found by code, since a judge may take a text for whole that ends well.
var cutShort = Issue{
	Type: IssueMissing, Severity: SeverityMajor, Description: "The draft was cut at the limit of tokens: its end is missing.",
	SuggestedFix: "Write a shorter draft.",
}

// judge asks all judges at the same time. A critique that cannot be read counts
// against the draft; any other failure of a judge ends the run.
func (l *loop) judge(ctx context.Context, i *Iteration, cut bool) (*Critique, error) {
	data := l.material(i.Evidence)
	data.Draft = i.Draft
	sent, err := messages("judge", "critique", data)
	if err != nil {
		return nil, err
	}
	slots := repl.FanOut(ctx, l.cfg.Judges, l.cfg.Judges, func(ctx context.Context, slot int) (Critique, error) {
		values, err := l.caller.TypedAll(ctx, repl.Ask{
			Node: node, Turn: l.turn, Slot: slot, Purpose: "critique", Model: l.cfg.JudgeModel, Messages: sent, Schema: l.contract,
		}, l.cfg.Retries)
		if err != nil {
			return Critique{}, err
		}
		return decodeCritiques(values)
	})
	var readable []Critique
	var failed []error
	unreadable := 0
	for n, s := range slots {
		var mismatch *repl.MismatchError
		switch {
		case s.Err == nil:
			readable = append(readable, s.Value)
		case errors.As(s.Err, &mismatch):
			unreadable++
			l.tell(repl.Event{Kind: repl.EventWarning, Purpose: "critique", Error: fmt.Sprintf("judge %d: %v", n+1, s.Err)})
		default:
			failed = append(failed, s.Err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	if cut {
		readable = append(readable, Critique{Issues: []Issue{cutShort}, Confidence: 1})
	}
	critique := Merge(readable, unreadable)
	text, err := json.Marshal(critique)
	if err != nil {
		return nil, fmt.Errorf("cannot tell of a critique: %w", err)
	}
	l.tell(repl.Event{Kind: repl.EventVerdict, Status: "the draft " + critique.String(), Text: string(text)})
	return &critique, nil
}

// record writes an iteration to the trajectory.
func (l *loop) record(sent []llm.Message, i *Iteration, begun time.Time) {
	var final any
	if i.Critique != nil && i.Critique.Passes {
		final = i.Draft
	}
	l.trace.Turn(repl.Iteration{
		Iteration: i.Number, Prompt: sent, Response: i.Draft, FinalAnswer: final, IterationTime: time.Since(begun).Seconds(),
	})
}

// tell emits an event of this loop.
func (l *loop) tell(e repl.Event) {
	e.Node, e.Turn = node, l.turn
	l.caller.Tell(e)
}
