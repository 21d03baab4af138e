package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// responseRequest is the body of POST /v1/responses.
type responseRequest struct {
	shared

	Input              input           `json:"input"`
	Instructions       string          `json:"instructions"`
	PreviousResponseID string          `json:"previous_response_id"`
	Conversation       json.RawMessage `json:"conversation"`
	Background         bool            `json:"background"`
	MaxOutputTokens    *int64          `json:"max_output_tokens"`
	MaxToolCalls       *int64          `json:"max_tool_calls"`
	Text               struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Reasoning *struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	SafetyIdentifier *string `json:"safety_identifier"`
	PromptCacheKey   *string `json:"prompt_cache_key"`
}

// input is a text or a list of items.
type input []inputItem

type inputItem struct {
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Content content `json:"content"`

	// For a call to a client's function, and for its result.
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments string  `json:"arguments"`
	Output    content `json:"output"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (in *input) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*in = input{{Role: "user", Content: content{{Type: "text", Text: text}}}}
		return nil
	}
	return json.Unmarshal(data, (*[]inputItem)(in))
}

// turns returns the messages and calls among the items. It leaves out turns of the root that a
// client sends back, because the answer contains what they found.
func (in input) turns() (turns []turn, err error) {
	for i := range in {
		one, param := &in[i], fmt.Sprintf("input[%d]", i)
		var t turn
		switch one.Type {
		case "", kindMessage:
			t, err = one.Content.read(one.Role, param)
		case kindCall:
			t.Role = llm.RoleAssistant
			t.Call = &earlierCall{one.Type, one.CallID, one.Name, one.Arguments}
		case kindCallResult:
			t, err = one.Output.read("user", param)
			t.Call = &earlierCall{Type: one.Type, ID: one.CallID}
		case kindCode, "reasoning":
			continue
		default:
			return nil, problem.Bad("input",
				"an item has the type %.40q: give messages, calls and their results", one.Type)
		}
		if err == nil && t.Call != nil && t.Call.ID == "" {
			err = problem.Bad(param, "a %s has no call_id", one.Type)
		}
		if err != nil {
			return nil, err
		}
		turns = append(turns, t)
	}

	return turns, nil
}

// read builds the request's question and the resource of its answer. Fresh are the messages that
// the request adds.
func (c *responseRequest) read(r *http.Request) (q *asked, fresh []turn, err error) {
	q = &asked{background: c.Background}
	switch {
	case len(c.Conversation) > 0 && string(c.Conversation) != "null":
		return nil, nil, problem.Bad("conversation", "this server has no conversations: use previous_response_id")
	case c.Background && c.Store != nil && !*c.Store:
		return nil, nil, problem.Bad("store", "a response in the background is stored: omit store")
	}
	if err := c.shared.read(r, q); err != nil {
		return nil, nil, err
	}
	if fresh, err = c.Input.turns(); err != nil {
		return nil, nil, err
	}

	q.System = c.Instructions
	if c.Reasoning != nil {
		q.sampling.ReasoningEffort = c.Reasoning.Effort
	}
	if err := q.readTokens(c.MaxOutputTokens, "max_output_tokens"); err != nil {
		return nil, nil, err
	}
	if n := c.MaxToolCalls; n != nil {
		if *n < 1 || *n > 1_000 {
			return nil, nil, problem.Bad("max_tool_calls", "give 1 to 1000")
		}
		if q.MaxTurns == 0 || int(*n) < q.MaxTurns {
			q.MaxTurns = int(*n)
		}
	}

	if err := q.readText(c.Text.Format); err != nil {
		return nil, nil, err
	}
	err = q.offer(&c.shared)
	return q, fresh, err
}

// resource returns the resource of a response that has not begun.
func (c *responseRequest) resource() resource {
	one := 1.0
	r := resource{
		ID: runs.NewID("resp_"), Object: "response", CreatedAt: unixNow(), Status: "queued", Model: c.Model,
		Output: []item{}, Tools: []tool{}, ToolChoice: json.RawMessage(`"auto"`), Truncation: "disabled",
		ParallelToolCalls: c.ParallelToolCalls == nil || *c.ParallelToolCalls,
		Text:              textSettings{json.RawMessage(`{"type":"text"}`)}, TopP: *cmp.Or(c.TopP, &one),
		Temperature: *cmp.Or(c.Temperature, &one), MaxOutputTokens: c.MaxOutputTokens, MaxToolCalls: c.MaxToolCalls,
		Store: c.Store == nil || *c.Store, Background: c.Background, ServiceTier: "default",
		Metadata: c.Metadata, SafetyIdentifier: c.SafetyIdentifier, PromptCacheKey: c.PromptCacheKey,
	}
	r.Tools = append(r.Tools, c.Tools...)
	if len(c.Text.Format) > 0 {
		r.Text.Format = c.Text.Format
	}
	if len(c.ToolChoice) > 0 && string(c.ToolChoice) != "null" {
		r.ToolChoice = c.ToolChoice
	}

	if c.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	if c.PreviousResponseID != "" {
		r.PreviousResponseID = &c.PreviousResponseID
	}
	if c.Instructions != "" {
		r.Instructions = &c.Instructions
	}
	if c.Reasoning != nil && c.Reasoning.Effort != "" {
		r.Reasoning = &reasoning{Effort: &c.Reasoning.Effort}
	}
	return r
}

// createResponse answers POST /v1/responses.
func (a *API) createResponse(w http.ResponseWriter, r *http.Request) error {
	var c responseRequest
	if err := readJSON(r, &c); err != nil {
		return err
	}
	q, fresh, err := c.read(r)
	if err != nil {
		return err
	}
	ctx, k := r.Context(), access.Caller(r.Context())
	if q.turns, err = a.earlier(ctx, k.Tenant, c.PreviousResponseID); err != nil {
		return err
	}
	q.turns = append(q.turns, fresh...)
	if err := q.check("input"); err != nil {
		return err
	}

	row := &stored{resource: c.resource(), tenant: k.Tenant, previous: c.PreviousResponseID, input: fresh}
	w.Header().Set(gate.ObjectHeader, row.ID)
	if q.isDirect(a.Long) {
		return a.respondDirectly(w, r, k, q, row, c.Stream)
	}
	return a.respondByRun(w, r, k, q, row, c.Stream)
}

// respondByRun answers with a run.
func (a *API) respondByRun(
	w http.ResponseWriter, r *http.Request, k access.Key, q *asked, row *stored, isStream bool,
) error {
	ctx := r.Context()
	record, err := a.start(ctx, k, q)
	if err != nil {
		return err
	}

	row.run = record.ID
	if known, err := a.byRun(ctx, k.Tenant, record.ID); err != nil || known != nil {
		if err != nil {
			return err
		}
		row = known // the same request was sent before
	} else if row.Store {
		if err := a.insert(ctx, row); err != nil {
			return errors.Join(err, a.Runs.Cancel(context.WithoutCancel(ctx), k.Tenant, record.ID))
		}
	}

	switch {
	case isStream:
		err = a.stream(w, r, row, -1)
	case row.Background:
		return a.sendNow(w, r, row)
	default:
		if _, err = a.Runs.Wait(ctx, k.Tenant, row.run); err == nil {
			return a.sendNow(w, r, row)
		}
	}
	if ctx.Err() != nil && !row.Background {
		return errors.Join(err, a.Runs.Cancel(context.WithoutCancel(ctx), k.Tenant, row.run))
	}
	return err
}

// sendNow sends the current state of a response.
func (a *API) sendNow(w http.ResponseWriter, r *http.Request, row *stored) error {
	t := &teller{resource: row.resource}
	if row.run == "" {
		writeJSON(w, http.StatusOK, row.resource)
		return nil
	}

	err := a.tellRun(r.Context(), t, row.tenant, row.run, func() error { return errNow })
	if err != nil && !errors.Is(err, errPaused) {
		return err
	}
	writeJSON(w, http.StatusOK, t.resource)
	return nil
}

// stream sends the events of a response after the given number, -1 for all.
func (a *API) stream(w http.ResponseWriter, r *http.Request, row *stored, after int64) error {
	out := newEventStream(w, after)
	defer out.close()
	t := &teller{resource: row.resource, send: out.send}

	var err error
	if row.run != "" {
		err = a.tellRun(r.Context(), t, row.tenant, row.run, out.flush)
	} else {
		if err = a.directs.wait(r.Context(), row.ID); err == nil {
			row, err = a.stored(r.Context(), row.tenant, row.ID)
		}
		if err == nil {
			err = t.tellWhole(&row.resource)
		}
	}
	if err == nil {
		out.done()
	} else if out.begun() {
		a.Log.Debug("a stream broke off", "response", row.ID, "error", err)
		return nil
	}
	return err
}

// respondDirectly answers with the root model.
func (a *API) respondDirectly(
	w http.ResponseWriter, r *http.Request, k access.Key, q *asked, row *stored, isStream bool,
) error {
	if row.Background {
		if err := a.insert(r.Context(), row); err != nil {
			return err
		}
		a.answerLater(k, q, row)
		if isStream {
			return a.stream(w, r, row, -1)
		}
		writeJSON(w, http.StatusOK, row.resource)
		return nil
	}

	t, ctx := &teller{resource: row.resource}, r.Context()
	if row.Store {
		inner, forget, err := a.keepNow(ctx, row, t)
		if err != nil {
			return err
		}
		defer forget()
		ctx = inner
	}
	if isStream {
		return a.streamDirect(ctx, w, k, q, t)
	}

	t.Status = "in_progress"
	if err := a.answerNow(ctx, k, q, t); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, t.resource)
	return nil
}

// answerNow asks the model and reports its answer. Failures are errors.
func (a *API) answerNow(ctx context.Context, k access.Key, q *asked, t *teller) error {
	reply, err := a.Runs.Ask(ctx, k, q.ask())
	if err != nil {
		return err
	}
	got := describeReply(&reply)
	got.incomplete = incompleteOf(reply.Finish)
	if err := t.split(&got); err != nil {
		return err
	}
	return t.end(&got, nil, unixNow())
}

// incompleteOf returns why a direct answer is incomplete, in the terms of responses.
func incompleteOf(finish string) string {
	switch finish {
	case llm.FinishLength:
		return "max_output_tokens"
	case llm.FinishRefusal:
		return "content_filter"
	}
	return ""
}

// streamDirect sends a direct answer as it arrives.
func (a *API) streamDirect(
	ctx context.Context, w http.ResponseWriter, k access.Key, q *asked, t *teller,
) error {
	out := newEventStream(w, -1)
	defer out.close()
	t.send = out.send
	ask := q.ask()
	told := false
	var broken error
	begin := func() {
		if !told {
			told, broken = true, t.begin()
		}
	}

	if len(q.Schema) == 0 {
		ask.Stream = func(text string) {
			if begin(); broken != nil {
				return
			}
			if text != "" {
				broken = t.add(text)
			} else if t.text() != "" {
				broken = problem.New(http.StatusBadGateway, "model_failed", "the model's server broke off: ask again")
			}
			broken = errors.Join(broken, out.flush())
		}
	}

	reply, err := a.Runs.Ask(ctx, k, ask)
	if err != nil && !told {
		return err
	}
	begin()
	got := describeReply(&reply)
	got.incomplete = incompleteOf(reply.Finish)
	if err == nil {
		err = t.split(&got)
	}
	if err = t.end(&got, errors.Join(err, broken), unixNow()); err != nil {
		return nil // the client has gone away
	}
	out.done()
	return nil
}

// getResponse answers GET /v1/responses/{id}.
func (a *API) getResponse(w http.ResponseWriter, r *http.Request) error {
	row, err := a.stored(r.Context(), access.Caller(r.Context()).Tenant, r.PathValue("id"))
	if err != nil {
		return err
	}
	if r.FormValue("stream") != "true" {
		return a.sendNow(w, r, row)
	}

	after := int64(-1)
	if text := r.FormValue("starting_after"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return problem.Bad("starting_after", "%.40q is no sequence_number", text)
		}
	}
	return a.stream(w, r, row, after)
}

// cancelResponse answers POST /v1/responses/{id}/cancel.
func (a *API) cancelResponse(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant := r.Context(), access.Caller(r.Context()).Tenant
	row, err := a.stored(ctx, tenant, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !row.Background {
		return problem.Bad("", "only a response in the background can be canceled: close the connection of others")
	}

	if row.run != "" {
		err = a.Runs.Cancel(ctx, tenant, row.run)
	} else {
		err = a.directs.cancel(ctx, row.ID)
	}
	if err != nil {
		return err
	}
	if row, err = a.stored(ctx, tenant, row.ID); err != nil {
		return err
	}
	return a.sendNow(w, r, row)
}
