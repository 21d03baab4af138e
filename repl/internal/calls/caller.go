package calls

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/internal/finish"
	"github.com/rlmhq/rlm/repl/internal/prompts"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
)

// Caller asks models for a tree of loops. All calls of the tree share one ledger, one limit
// on calls in flight, and one stream of events. It is safe for concurrent use.
type Caller struct {
	Models ledger.Models
	Ledger *Ledger
	// Gate limits model calls in flight. Only calls hold a place, never a loop that waits for
	// another, so a deep tree cannot deadlock.
	Gate Gate
	// Emit receives events, concurrently.
	Emit func(ledger.Event)
	// MaxReply bounds the tokens of a reply; 0 is DefaultReply.
	MaxReply int
	// KeptCalls is the number of calls of the budget that, with some tokens and dollars, are
	// reserved for calls with Ask.Last.
	KeptCalls int64

	names   []string // the models accepted by CheckModel
	waits   *waits
	windows *windows
}

// DefaultReply bounds a reply, in tokens. A call in flight reserves this much of the budget.
const DefaultReply = 8_192

// Ask is one question to a model.
type Ask struct {
	// Node, Depth and Turn identify the asking loop, Slot the index in a fan-out.
	Node        string
	Depth, Turn int
	Slot        int
	Purpose     string
	Model       string
	Messages    []llm.Message
	Schema      *schema.Contract
	MaxTokens   int
	Temperature *float64
	// Embed requests vectors instead of a reply: see [llm.Request].
	Embed bool
	// Stream receives the reply as it arrives; nil for none.
	Stream func(delta string)
	// Last lets the call use the part of the budget that Caller.KeptCalls reserves.
	Last bool
	// Sub marks a call of a snippet. Its record then holds the next three fields, which are
	// documented at [ledger.SubCall].
	Sub           bool
	Question      string
	ContextLength int
	Mode          string
	// Agent is the name of the agent that answers, empty for none.
	Agent string
}

// NewCaller returns the caller of a run and opens its ledger. Each model must be known and, with
// strictUSD, have a price: see [Caller.CheckModel].
func NewCaller(base Caller, b ledger.Budget, models []string, strictUSD bool) (*Caller, error) {
	var err error
	if base.Ledger, err = NewLedger(b); err != nil {
		return nil, err
	}
	base.Ledger.atOnce, base.Ledger.kept = int64(cap(base.Gate)), base.KeptCalls
	base.waits, base.windows = &waits{}, &windows{}
	for _, name := range models {
		if err := base.CheckModel(name, strictUSD); err != nil {
			return nil, err
		}
	}

	return &base, nil
}

// OpenRecord begins the record of a run, as [record.Open] does, and also sends events to it.
func (c *Caller) OpenRecord(ctx context.Context, dir string) (*record.Trace, error) {
	trace, err := record.Open(ctx, dir)
	if trace == nil || err != nil {
		return nil, err
	}

	progress := c.Emit
	c.Emit = func(e ledger.Event) {
		if e.Kind != ledger.EventDelta {
			trace.Event(e)
		}
		if progress != nil {
			progress(e)
		}
	}

	return trace, nil
}

// CheckModel resolves a model. With strictUSD it rejects a model without a price, because the
// run could not keep its dollar budget. Call it before any work.
func (c *Caller) CheckModel(name string, strictUSD bool) error {
	m, err := c.Models.Resolve(name)
	if err != nil {
		return err
	}
	if strictUSD && m.Facts.Price == nil {
		return fmt.Errorf(
			"the budget is in US dollars and the price of model %q is not known: "+
				"give it with --price or in a price table, or bound calls and tokens instead",
			name,
		)
	}

	c.names = append(c.names, name)
	return nil
}

// estimateCost returns the most that a call to a model can use.
func estimateCost(m *llm.Model, r *llm.Request) Need {
	prompt := llm.Usage{InputTokens: usage.EstimateInput(*r)}
	whole := prompt
	whole.OutputTokens = int64(r.MaxTokens)
	return Need{Spending: spend(m, whole), PromptUSD: spend(m, prompt).USD}
}

// spend returns the part of the budget that one call with a usage consumes.
func spend(m *llm.Model, u llm.Usage) ledger.Spending {
	spent := ledger.Spending{Calls: 1, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens}
	usd, known := m.Facts.Cost(u)
	if spent.USD = usd; !known && u != (llm.Usage{}) {
		spent.Unpriced = 1
	}
	return spent
}

// makeRequest makes the request for the provider.
func (c *Caller) makeRequest(a *Ask, m *llm.Model) llm.Request {
	r := llm.Request{
		Model: m.ID, Messages: a.Messages, MaxTokens: a.MaxTokens,
		Sampling: llm.Sampling{Temperature: a.Temperature},
		Metadata: llm.Metadata{Purpose: a.Purpose, Depth: a.Depth, Turn: a.Turn, Slot: a.Slot},
	}
	if a.Embed {
		r.Embed = true
		return r
	}
	if a.Schema != nil {
		r.Schema = a.Schema.JSONSchema()
	}
	if r.MaxTokens == 0 {
		r.MaxTokens = c.MaxReply
	}
	if r.MaxTokens == 0 {
		r.MaxTokens = DefaultReply
	}
	if most := m.Facts.MaxOutput; most > 0 {
		r.MaxTokens = min(r.MaxTokens, int(most))
	}
	if window := m.Facts.Window; window > 0 {
		r.MaxTokens = min(r.MaxTokens, int(roomForReply(window, usage.EstimateInput(r))))
	}

	return r
}

// Estimate returns the typical spending of an ask that is made once.
func (c *Caller) Estimate(a Ask) (ledger.Spending, error) {
	m, err := c.resolve(a.Model)
	if err != nil {
		return ledger.Spending{}, err
	}
	r := c.makeRequest(&a, &m)
	r.MaxTokens = min(r.MaxTokens, predictTokens(a.Schema))
	return estimateCost(&m, &r).Spending, nil
}

// ask asks a model once. It waits at the gate, reserves the maximum cost, asks, and settles the
// real cost. Least is the number of reply tokens with which the call can begin, 0 for all.
func (c *Caller) ask(
	ctx context.Context, a Ask, least int64,
) (response llm.Response, granted room, err error) {
	step, err := runlog.Begin(ctx, a.describe)
	if err != nil {
		return response, granted, err
	}
	defer step.Leave()
	if kept, ok := step.Ending(); ok {
		return c.repeat(ctx, a, kept)
	}

	m, err := c.resolve(a.Model)
	if err != nil {
		return response, granted, err
	}
	r := c.makeRequest(&a, &m)
	need := estimateCost(&m, &r)
	need.Sub, need.Last, need.Least = a.Sub || a.Depth > 0, a.Last, least
	if window := m.Facts.Window; window > 0 && need.InputTokens > window && !a.Embed {
		return response, granted, &llm.Error{Kind: llm.ErrContextLength, Model: a.Model, Message: fmt.Sprintf(
			"about %d tokens, more than the window of %d: split it", need.InputTokens, window,
		)}
	}

	if need.Sub {
		var cancel context.CancelFunc
		ctx, cancel = c.Ledger.WithTimeForRoot(ctx, 1)
		defer cancel()
	}
	if err := c.Gate.Enter(ctx); err != nil {
		return response, granted, err
	}
	defer c.Gate.Leave()
	reserved, err := c.Ledger.Reserve(ctx, need)
	if err != nil {
		if c.Ledger.CountRefusal() {
			c.emit(a, ledger.Event{Kind: ledger.EventRefusal, Error: err.Error()})
		}
		return response, granted, err
	}

	granted = room{reserved.Grant.OutputTokens, reserved.Grant.OutputTokens < need.OutputTokens}
	r.MaxTokens = int(granted.Tokens)
	if a.Sub {
		c.emit(a, ledger.Event{Kind: ledger.EventCallStarted})
	}
	begun := time.Now()

	asked := callnotes.Asked{MaxTokens: r.MaxTokens, Temperature: r.Temperature}
	response, err = complete(callnotes.With(ctx, callNotes{c, a, &asked}), &m, r, a.Stream)
	used := c.settle(ctx, reserved, &m, &r, response, err)
	if failed := a.keep(ctx, step, ending{Room: granted, Used: used, Response: response}, err); failed != nil {
		return response, granted, failed
	}
	answered := response // observers may keep it
	if a.Embed {
		answered.Text = "" // vectors are useless to observers
	}
	c.report(ctx, a, ledger.Event{
		Elapsed: time.Since(begun), Used: &used, Request: withAsked(r, asked), Response: &answered,
		Err: err, Host: asked.Host, Port: asked.Port,
	})

	response.Text = texts.DropThoughts(response.Text)
	return response, granted, err
}

// complete asks a model's provider. The provider is the embedder's code, and it also runs in
// goroutines where a panic would end the process.
func complete(
	ctx context.Context, m *llm.Model, r llm.Request, stream func(string),
) (response llm.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("a provider panicked",
				"model", m.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("cannot ask model %s: its provider panicked", m.Name)
		}
	}()
	response, err = m.Provider.Complete(ctx, r, stream)
	if reason, ok := finish.Read(cmp.Or(response.Finish, finish.Stop)); ok {
		response.Finish = reason // the provider may be the embedder's
	}
	return response, err
}

// settle books the spending of a call. A call that failed before its reply is counted but costs
// nothing. A call that was interrupted costs its prompt, because servers charge for the prompt. A
// reply that arrived costs its price, even if it could not be recorded.
func (c *Caller) settle(
	ctx context.Context, reserved *Reservation, m *llm.Model, r *llm.Request, response llm.Response,
	err error,
) ledger.Spending {
	var counted llm.Usage
	var failed *llm.Error
	switch {
	case err == nil || response.Usage != (llm.Usage{}):
		counted = usage.Or(response.Usage, *r, response.Text)
	case errors.As(err, &failed):
		counted = failed.Usage
	case ctx.Err() != nil:
		counted = llm.Usage{InputTokens: usage.EstimateInput(*r), Estimated: true}
	}

	used := spend(m, counted)
	reserved.Settle(used)
	return used
}

// withAsked returns a request as its provider sent it.
func withAsked(r llm.Request, asked callnotes.Asked) *llm.Request {
	r.MaxTokens = asked.MaxTokens
	r.Temperature, r.TopP, r.Seed = asked.Temperature, asked.TopP, asked.Seed
	return &r
}

// report completes and emits the event of a call, and records the call if a snippet made it.
func (c *Caller) report(ctx context.Context, a Ask, e ledger.Event) {
	e.Kind, e.Text, e.Status = ledger.EventReply, e.Response.Text, e.Response.Finish
	if e.Err != nil {
		e.Error = e.Err.Error()
	}
	if a.Sub {
		call := ledger.SubCall{
			Model:         a.Model,
			Prompt:        findLastUser(a.Messages),
			Response:      e.Response.Text,
			Elapsed:       e.Elapsed,
			Err:           e.Err,
			Question:      a.Question,
			ContextLength: a.ContextLength,
			Mode:          a.Mode,
			Agent:         a.Agent,
			Usage: llm.Usage{
				InputTokens:  e.Used.InputTokens,
				OutputTokens: e.Used.OutputTokens,
			},
		}
		e.Kind, e.Call = ledger.EventCall, &call
		RecordCall(ctx, call)
	}

	spent := c.Ledger.Spent()
	e.Spent = &spent
	c.emit(a, e)
}

func (c *Caller) emit(a Ask, e ledger.Event) {
	e.Node, e.Depth, e.Turn, e.Purpose, e.Model = a.Node, a.Depth, a.Turn, a.Purpose, a.Model
	e.Agent = a.Agent
	c.Tell(e)
}

// Tell emits an event after adding its time. A panic of the receiver does not end the run.
func (c *Caller) Tell(e ledger.Event) {
	if c.Emit == nil {
		return
	}
	e.Time = time.Now()
	if e.Kind != ledger.EventDelta { // the receiver joins the pieces
		e.Text = texts.Truncate(e.Text, maxEventText)
	}

	defer func() {
		if p := recover(); p != nil {
			slog.Error("the receiver of a run's events panicked",
				"event", e.Kind, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	c.Emit(e)
}

func findLastUser(messages []llm.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == llm.RoleUser {
			return messages[i].Content
		}
	}
	return ""
}

// DefaultRetries bounds the further attempts after an answer that violates its contract, or is
// truncated or empty.
const DefaultRetries = 2

// MismatchError reports that every answer violated the contract.
type MismatchError struct {
	Violations []schema.Violation
}

// Error lists the violations.
func (e *MismatchError) Error() string {
	return "the answer does not meet the schema: " + prompts.Join(e.Violations)
}

// CheckRefusal returns an error if a model or its server's filter declined to answer. The text of
// such a reply is never an answer.
func CheckRefusal(model string, r llm.Response) error {
	if r.Finish != llm.FinishRefusal {
		return nil
	}
	return fmt.Errorf("the model %s declined: %s", model, texts.Truncate(r.Text, 500))
}

// CompleteTyped asks a model for a value that meets a.Schema. After an invalid answer it sends the
// violations and asks again; after an incomplete reply it asks with more room. It asks again at
// most retries times. If no answer is valid, the error is a [*MismatchError].
func (c *Caller) CompleteTyped(ctx context.Context, a Ask, retries int) (json.RawMessage, error) {
	return askUntilValid(ctx, c, a, retries, a.Schema.CheckReply)
}

// CompleteAll is like [Caller.CompleteTyped] but returns every value in the answer that meets
// a.Schema: see [schema.Contract.CheckReplyAll].
func (c *Caller) CompleteAll(ctx context.Context, a Ask, retries int) ([]json.RawMessage, error) {
	return askUntilValid(ctx, c, a, retries, a.Schema.CheckReplyAll)
}

// askUntilValid asks until check finds a value, with at most retries further attempts.
func askUntilValid[T any](
	ctx context.Context, c *Caller, a Ask, retries int,
	check func(string) (T, []schema.Violation, error),
) (none T, err error) {
	a.Messages = append([]llm.Message(nil), a.Messages...)
	for {
		response, lack, err := c.completeWhole(ctx, &a, &retries)
		if err != nil {
			return none, err
		}
		if lack != "" {
			return none, &MismatchError{[]schema.Violation{{Path: "$", Message: lack}}}
		}
		value, violations, err := check(response.Text)
		if err != nil {
			return none, err
		}

		// A refusal is not an answer, even if its text looks like one.
		if declined := CheckRefusal(a.Model, response); declined != nil {
			violations = []schema.Violation{{Path: "$", Message: declined.Error()}}
		}

		if len(violations) == 0 {
			return value, nil
		}
		if retries--; retries < 0 {
			return none, &MismatchError{violations}
		}

		c.emit(a, ledger.Event{Kind: ledger.EventRetry, Error: prompts.Join(violations)})
		a.Messages = append(a.Messages,
			llm.Message{Role: llm.RoleAssistant, Content: NonEmpty(response.Text)},
			llm.Message{Role: llm.RoleUser, Content: prompts.Correction(a.Schema, violations)})
	}
}
