package native

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sse"
)

// run is the wire format of a run.
type run struct {
	ID       string          `json:"id"`
	Profile  string          `json:"profile"`
	Question string          `json:"question"`
	Contexts []string        `json:"contexts" nullable:"false"`
	Status   string          `json:"status" doc:"queued, running, interrupted, or how it ended"`
	Reason   string          `json:"reason,omitempty" doc:"why the status is not answered"`
	Answer   json.RawMessage `json:"answer,omitempty" doc:"the answer as JSON"`
	Partial  string          `json:"partial,omitempty" doc:"what a run without an answer had, not checked"`
	Turns    int             `json:"turns"`
	Spent    spent           `json:"spent"`
	Waiting  []waiting       `json:"waiting,omitempty" doc:"calls that wait for a decision"`
	Parent   string          `json:"parent,omitempty" doc:"the run that this one was forked from"`
	Turn     int             `json:"parent_turn,omitempty" doc:"the turn of the parent after which this run began"`
	Created  time.Time       `json:"created"`
	Ended    *time.Time      `json:"ended,omitempty"`
}

type spent struct {
	Calls        int64  `json:"calls"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	USD          string `json:"usd" doc:"US dollars, as a decimal number"`
	Unpriced     int64  `json:"unpriced_calls"`
	ToolCalls    int64  `json:"tool_calls"`
}

type waiting struct {
	ID    string          `json:"id"`
	Call  json.RawMessage `json:"call" doc:"the whole call, which the code of a model has made"`
	Why   string          `json:"why"`
	Asked time.Time       `json:"asked"`
}

func describeSpent(s ledger.Spending) spent {
	usd := strconv.FormatFloat(s.USD, 'f', -1, 64)
	return spent{s.Calls, s.InputTokens, s.OutputTokens, usd, s.Unpriced, s.ToolCalls}
}

func describe(r *runs.Record, calls []rlm.Approval) run {
	out := run{
		ID: r.ID, Profile: r.Spec.Profile, Question: r.Spec.Question, Contexts: r.Spec.Contexts, Status: r.Status,
		Reason: r.Reason, Answer: r.Outcome.Answer, Partial: r.Outcome.Partial, Turns: r.Outcome.Turns,
		Spent: describeSpent(r.Charged), Created: r.Created, Parent: r.Spec.Parent, Turn: r.Spec.ParentTurn,
	}
	if out.Contexts == nil {
		out.Contexts = []string{}
	}

	if !r.Ended.IsZero() {
		out.Ended = &r.Ended
	}
	for _, c := range calls {
		out.Waiting = append(out.Waiting, waiting{c.ID, c.Call, c.Why, c.Asked})
	}
	return out
}

// Encode returns a run in the API's JSON format.
func Encode(r *runs.Record) (json.RawMessage, error) { return json.Marshal(describe(r, nil)) }

// one is an answer that contains a run.
type one struct {
	Object string `header:"X-Rlm-Object"`
	Body   run
}

// byID is an input that contains the ID of a run, session or key.
type byID struct {
	ID string `path:"id" maxLength:"100"`
}

type startInput struct {
	Word string `header:"Idempotency-Key" maxLength:"255" doc:"a second request with it is the first one again"`
	Body struct {
		Question string          `json:"question" minLength:"1" maxLength:"1048576"`
		Profile  string          `json:"profile,omitempty" maxLength:"32" doc:"default if it is not given"`
		System   string          `json:"system,omitempty" maxLength:"1048576" doc:"instructions for the root model"`
		Schema   json.RawMessage `json:"schema,omitempty" doc:"contract of the answer: JSON Schema, or type text"`
		Contexts []contextInput  `json:"contexts,omitempty" maxItems:"100"`
		Budget   *budgetInput    `json:"budget,omitempty" doc:"bounds the run further than its profile does"`
		MaxTurns int             `json:"max_turns,omitempty" minimum:"1" maximum:"1000"`
	}
}

type contextInput struct {
	Name string `json:"name,omitempty" maxLength:"255"`
	Text string `json:"text,omitempty" doc:"the content itself"`
	File string `json:"file,omitempty" maxLength:"100" doc:"or the ID of an uploaded file"`
}

type budgetInput struct {
	USD       float64 `json:"usd,omitempty" minimum:"0"`
	Calls     int64   `json:"calls,omitempty" minimum:"0"`
	ToolCalls int64   `json:"tool_calls,omitempty" minimum:"0"`
	Tokens    int64   `json:"tokens,omitempty" minimum:"0"`
	Seconds   int64   `json:"seconds,omitempty" minimum:"0" maximum:"1000000"`
}

func (b *budgetInput) read() ledger.Budget {
	return ledger.Budget{
		USD: b.USD, Calls: b.Calls, ToolCalls: b.ToolCalls, Tokens: b.Tokens,
		Wall: time.Duration(b.Seconds) * time.Second,
	}
}

// start answers POST /v1/runs.
func (a *api) start(ctx context.Context, in *startInput) (*one, error) {
	k, b := access.Caller(ctx), &in.Body
	r := runs.Request{Background: true, Idempotency: in.Word, Spec: runs.Spec{
		Question: b.Question, Profile: b.Profile, System: b.System, Schema: b.Schema, MaxTurns: b.MaxTurns,
	}}
	if b.Budget != nil {
		r.Budget = b.Budget.read()
	}

	for _, c := range b.Contexts {
		content := runs.Content{Name: c.Name, Text: c.Text}
		if (c.File == "") == (c.Text == "") {
			return nil, problem.Bad("contexts", "a context has a text or a file: give one of them")
		}
		if c.File != "" {
			file, err := a.Files.Get(ctx, k.Tenant, c.File)
			if err != nil {
				return nil, err
			}
			content.Path = a.Files.Path(file.ID)
			if content.Name == "" {
				content.Name = file.Name
			}
		}
		r.Contents = append(r.Contents, content)
	}

	record, err := a.Runs.Start(ctx, k, r)
	if err != nil {
		return nil, err
	}
	return &one{record.ID, describe(&record, nil)}, nil
}

type listInput struct {
	Status string    `query:"status" maxLength:"20"`
	Text   string    `query:"text" maxLength:"1000" doc:"a part of the question"`
	Since  time.Time `query:"since" doc:"the earliest begin"`
	After  string    `query:"after" maxLength:"100" doc:"next of the page before"`
	Limit  int       `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type listOutput struct {
	Body struct {
		Runs []run  `json:"runs" nullable:"false"`
		Next string `json:"next,omitempty" doc:"after of the next page; there is none if it is missing"`
	}
}

// list answers GET /v1/runs.
func (a *api) list(ctx context.Context, in *listInput) (*listOutput, error) {
	all, more, err := a.Runs.List(ctx, access.Caller(ctx).Tenant, runs.Filter{
		Status: in.Status, Text: in.Text, Since: in.Since, After: in.After, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	out := &listOutput{}
	out.Body.Runs = []run{}
	for i := range all {
		out.Body.Runs = append(out.Body.Runs, describe(&all[i], nil))
	}

	if more {
		out.Body.Next = all[len(all)-1].ID
	}
	return out, nil
}

// get answers GET /v1/runs/{id}.
func (a *api) get(ctx context.Context, in *byID) (*one, error) {
	tenant := access.Caller(ctx).Tenant
	record, err := a.Runs.Get(ctx, tenant, in.ID)
	if err != nil {
		return nil, err
	}
	calls, err := a.Runs.Waiting(ctx, tenant, in.ID)
	if err != nil {
		return nil, err
	}
	return &one{record.ID, describe(&record, calls)}, nil
}

// cancel answers POST /v1/runs/{id}/cancel.
func (a *api) cancel(ctx context.Context, in *byID) (*one, error) {
	if err := a.Runs.Cancel(ctx, access.Caller(ctx).Tenant, in.ID); err != nil {
		return nil, err
	}
	return a.get(ctx, in)
}

type decideInput struct {
	ID   string `path:"id" maxLength:"100"`
	Body struct {
		Approval string          `json:"approval" minLength:"1" maxLength:"100" doc:"the ID of the call that waits"`
		Allow    bool            `json:"allow"`
		Reason   string          `json:"reason,omitempty" maxLength:"10000" doc:"for the snippet, if it is not allowed"`
		Value    json.RawMessage `json:"value,omitempty" doc:"the answer to the call, which is then not made"`
	}
}

// decide answers POST /v1/runs/{id}/approvals.
func (a *api) decide(ctx context.Context, in *decideInput) (*one, error) {
	d := rlm.Decision{Allow: in.Body.Allow, Reason: in.Body.Reason, Value: in.Body.Value}
	if err := a.Runs.Decide(ctx, access.Caller(ctx).Tenant, in.ID, in.Body.Approval, d); err != nil {
		return nil, err
	}
	return a.get(ctx, &byID{in.ID})
}

type watchInput struct {
	ID   string `path:"id" maxLength:"100"`
	Last int64  `header:"Last-Event-ID" minimum:"0" doc:"the number of the last event that is known already"`
}

// watch answers GET /v1/runs/{id}/events.
func (a *api) watch(ctx context.Context, in *watchInput) (*huma.StreamResponse, error) {
	tenant := access.Caller(ctx).Tenant
	if _, err := a.Runs.Get(ctx, tenant, in.ID); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		r, w := humago.Unwrap(h)
		stream := sse.Begin(w)
		err := a.Runs.Follow(r.Context(), tenant, in.ID, in.Last, func(n int64, event []byte) error {
			return stream.Write(sse.Event{ID: n, Data: event})
		}, stream.Flush)
		if err == nil {
			_, err = a.Runs.Wait(r.Context(), tenant, in.ID) // written after the last event
		}

		if err == nil {
			err = stream.Write(sse.Event{Name: "end", Data: []byte("{}")})
		}
		if err = errors.Join(err, stream.Flush()); err != nil {
			a.Log.Debug("a watcher has gone away", "request", gate.ID(ctx), "error", err)
		}
	}}, nil
}
