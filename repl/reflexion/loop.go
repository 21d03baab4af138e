package reflexion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/data/bm25"
	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/fanout"
	"github.com/rlmhq/rlm/repl/internal/harness"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
)

// loop is one run of the reflexion loop.
type loop struct {
	cfg      Config
	caller   *calls.Caller
	contract *schema.Contract
	evidence *evidence
	trace    *record.Trace
	result   Outcome
	turn     int
}

// node is the name of the loop in the events.
const node = harness.Root

// Run drafts, judges and revises until a draft passes, or the iterations or the budget are used
// up. The error is a [*repl.SetupError] if the run could not begin, the context's cause, or a
// description of the failure; the Outcome then holds the last draft as a fallback. Running out
// of budget is not an error.
func Run(ctx context.Context, cfg Config) (Outcome, error) {
	l := &loop{cfg: cfg, result: Outcome{Iterations: []Iteration{}}}
	err := harness.Run(ctx, l)
	if err != nil && l.result.Status == "" {
		l.result.Status, l.result.Reason = ledger.StatusFailed, err.Error()
	}
	return l.result, err
}

// Prepare makes every check that needs no model, and reads the files.
func (l *loop) Prepare(ctx context.Context) (plan harness.Plan, err error) {
	strictUSD := l.cfg.Budget.USD != 0
	l.cfg = l.cfg.withDefaults()
	if err := l.cfg.validate(); err != nil {
		return plan, err
	}
	if l.contract, err = critiqueContract(); err != nil {
		return plan, err
	}

	cfg := &l.cfg
	models := []string{cfg.Model, cfg.SubModel}
	if cfg.EmbedModel != "" {
		models = append(models, cfg.EmbedModel)
	}
	l.caller, err = calls.NewCaller(calls.Caller{
		Models: cfg.Models, Gate: calls.NewGate(cfg.CallsAtOnce), MaxReply: cfg.MaxReply,
		Emit: cfg.Progress,
	}, cfg.Budget, models, strictUSD)
	if err != nil {
		return plan, err
	}

	var library *bm25.Library
	if len(cfg.Paths) > 0 {
		if library, err = bm25.Open(ctx, cfg.Paths, bm25.Bounds{}); err != nil {
			return plan, err
		}
	}
	var meaning *meanings
	if cfg.EmbedModel != "" {
		if err := checkEmbedded(library); err != nil {
			return plan, err
		}
		meaning = &meanings{caller: l.caller, model: cfg.EmbedModel, known: map[string]vector{}}
	}

	l.evidence = newEvidence(cfg.Task, &cfg.Memory, library, meaning)

	return harness.Plan{
		Caller: l.caller, Folder: cfg.Trace,
		Started: ledger.Event{Model: cfg.Model, Text: cfg.Task},
	}, nil
}

// Conclude completes the result.
func (l *loop) Conclude(e *harness.Ending) ledger.Event {
	r := &l.result
	if e.Status != "" {
		r.Status, r.Reason = e.Status, e.Reason
	}
	r.Spent, r.Budget, r.Elapsed, r.Trace = e.Spent, e.Budget, e.Elapsed, e.Folder
	r.TotalLLMCalls, r.TotalTokens = r.Spent.Calls, r.Spent.InputTokens+r.Spent.OutputTokens
	r.Success = r.Status == StatusPassed
	return ledger.Event{Turn: l.turn, Status: string(r.Status), Text: r.FinalDraft, Error: r.Reason}
}

// Solve runs the iterations and sets the status. An error ends them early.
func (l *loop) Solve(ctx context.Context, trace *record.Trace) error {
	l.trace = trace
	l.begin()
	var critique *Critique
	for l.turn = 1; l.turn <= l.cfg.MaxIterations; l.turn++ {
		begun, inTurn := time.Now(), runlog.EnterTurn(ctx, l.turn)
		l.tell(ledger.Event{Kind: ledger.EventTurnStarted, Model: l.cfg.Model})
		sent, response, err := l.write(inTurn, critique)
		if err != nil {
			return err
		}

		draft := l.result.FinalDraft
		found, err := l.evidence.gather(ctx, l.turn, draft, critique)
		if err != nil {
			return err
		}
		l.result.Iterations = append(l.result.Iterations, Iteration{
			Number: l.turn, Draft: draft, Evidence: found, Revised: l.turn > 1,
		})

		now := &l.result.Iterations[l.turn-1]
		now.Critique, err = l.judge(inTurn, now, response.Finish != llm.FinishStop)
		l.record(sent, now, begun)
		if err != nil {
			return err
		}

		critique = now.Critique
		if critique.Passes {
			l.result.Status = StatusPassed
			l.tell(ledger.Event{Kind: ledger.EventAnswer, Text: draft})
			return nil
		}

		if !critique.isBlocked() {
			l.result.Status, l.result.Reason = StatusUnjudged, "the draft "+critique.String()
			return nil
		}
		if err := runlog.EndTurn(ctx, l.turn); err != nil {
			return err
		}
	}

	l.turn = l.cfg.MaxIterations
	l.result.Status = StatusRejected
	l.result.Reason = fmt.Sprintf(
		"after %d of %d iterations the draft %s", l.turn, l.cfg.MaxIterations, critique,
	)

	return nil
}

// begin opens the record.
func (l *loop) begin() {
	l.trace.Begin(trajectory.Metadata{
		RootModel: l.cfg.Model, MaxIterations: l.cfg.MaxIterations,
		EnvironmentType: "reflexion", EnvironmentKwargs: map[string]any{"judges": l.cfg.Judges},
		OtherBackends: []string{l.cfg.SubModel},
	})

	if l.evidence.library == nil {
		return
	}
	if left := l.evidence.library.Skipped().String(); left != "" {
		l.tell(ledger.Event{
			Kind: ledger.EventWarning, Purpose: "evidence",
			Error: "files not searched for evidence: " + left,
		})
	}
}

// material returns the values of this iteration's prompts.
func (l *loop) material(found []Evidence) shown {
	m := &l.cfg.Memory
	return shown{
		Task: l.cfg.Task, History: m.recent(), Facts: m.Facts, Procedures: m.Procedures,
		Passages: found[len(l.evidence.memory):], Contract: l.contract.Describe(),
	}
}

// write asks for the first draft, or for a revision after a critique, and stores it as the final
// draft for now.
func (l *loop) write(
	ctx context.Context, critique *Critique,
) (sent []llm.Message, response llm.Response, err error) {
	found, err := l.evidence.gather(ctx, l.turn, l.result.FinalDraft, critique)
	if err != nil {
		return nil, response, err
	}
	data := l.material(found)
	purpose := "draft"
	if critique != nil {
		purpose, data.Draft, data.Issues = "revision", l.result.FinalDraft, critique.Issues
	}
	if sent, err = fillMessages("writer", purpose, data); err != nil {
		return nil, response, err
	}

	ask := calls.Ask{Node: node, Turn: l.turn, Purpose: purpose, Model: l.cfg.Model, Messages: sent}
	if l.cfg.Stream && l.cfg.Progress != nil {
		ask.Stream = func(delta string) {
			l.tell(ledger.Event{
				Kind: ledger.EventDelta, Purpose: purpose, Model: l.cfg.Model, Text: delta,
			})
		}
	}

	if response, err = l.caller.Complete(ctx, ask); err != nil {
		return sent, response, err
	}
	draft := strings.TrimSpace(strings.ToValidUTF8(response.Text, "\uFFFD"))
	if declined := calls.CheckRefusal(l.cfg.Model, response); declined != nil {
		return sent, response, declined
	}
	if draft == "" {
		return sent, response, fmt.Errorf("the model %s gave an empty draft", l.cfg.Model)
	}

	l.result.FinalDraft = draft
	return sent, response, nil
}

// cutShort is the issue of a truncated draft. Code adds it, because a judge may overlook a missing
// end.
var cutShort = Issue{
	Type: issueMissing, Severity: severityMajor,
	Description:  "The draft was cut, at the limit of tokens in most cases: its end is missing.",
	SuggestedFix: "Write a shorter draft.",
}

// judge asks all judges concurrently. An unreadable critique keeps the draft from passing; any
// other failure of a judge ends the run.
func (l *loop) judge(ctx context.Context, i *Iteration, cut bool) (*Critique, error) {
	data := l.material(i.Evidence)
	data.Draft = i.Draft
	sent, err := fillMessages("judge", "critique", data)
	if err != nil {
		return nil, err
	}

	slots := fanout.Run(
		ctx,
		l.cfg.Judges,
		l.cfg.Judges,
		func(ctx context.Context, slot int) (Critique, error) {
			values, err := l.caller.CompleteAll(ctx, calls.Ask{
				Node: node, Turn: l.turn, Slot: slot, Purpose: "critique",
				Model: l.cfg.SubModel, Messages: sent, Schema: l.contract,
			}, l.cfg.Retries)
			if err != nil {
				return Critique{}, err
			}
			return decodeCritiques(values)
		},
	)

	var readable []Critique
	var failed []error
	unreadable := 0
	for n, s := range slots {
		var mismatch *calls.MismatchError
		switch {
		case s.Err == nil:
			readable = append(readable, s.Value)
		case errors.As(s.Err, &mismatch):
			unreadable++
			l.tell(ledger.Event{
				Kind: ledger.EventWarning, Purpose: "critique",
				Error: fmt.Sprintf("judge %d: %v", n+1, s.Err),
			})
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

	critique := mergeCritiques(readable, unreadable)
	text, err := json.Marshal(critique)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a critique: %w", err)
	}
	l.tell(ledger.Event{
		Kind: ledger.EventVerdict, Status: "the draft " + critique.String(), Text: string(text),
	})

	return &critique, nil
}

// record writes an iteration to the trajectory.
func (l *loop) record(sent []llm.Message, i *Iteration, begun time.Time) {
	var final any
	if i.Critique != nil && i.Critique.Passes {
		final = i.Draft
	}
	l.trace.Turn(record.Iteration{
		Iteration: i.Number, Prompt: sent, Response: i.Draft, FinalAnswer: final,
		IterationTime: time.Since(begun).Seconds(),
	})
}

// tell emits an event of this loop.
func (l *loop) tell(e ledger.Event) {
	e.Node, e.Turn = node, l.turn
	l.caller.Tell(e)
}
