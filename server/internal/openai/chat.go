package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sse"
)

// chatRequest is the body of POST /v1/chat/completions.
type chatRequest struct {
	shared

	Messages      []chatMessage `json:"messages"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int64            `json:"max_tokens"`
	MaxCompletionTokens *int64            `json:"max_completion_tokens"`
	ReasoningEffort     string            `json:"reasoning_effort"`
	Stop                words             `json:"stop"`
	N                   *int              `json:"n"`
	Format              *format           `json:"response_format"`
	Functions           []json.RawMessage `json:"functions"`
	Logprobs            bool              `json:"logprobs"`
	Modalities          []string          `json:"modalities"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// chatCall is a call to a client's function.
type chatCall struct {
	Index    *int   `json:"index,omitempty"` // in a stream
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function call   `json:"function"`
}

// turns returns the message as a conversation's message, and the calls that it requests.
func (m *chatMessage) turns(param string) (all []turn, err error) {
	if m.Role == "tool" {
		t, err := m.Content.read("user", param)
		if err == nil && m.ToolCallID == "" {
			err = problem.Bad(param, "a result has no tool_call_id")
		}
		t.Call = &earlierCall{Type: kindCallResult, ID: m.ToolCallID}
		return []turn{t}, err
	}

	t, err := m.Content.read(m.Role, param)
	if len(m.ToolCalls) == 0 || len(m.Content) > 0 {
		all = append(all, t)
	}
	for _, c := range m.ToolCalls {
		all = append(all, turn{
			Role: llm.RoleAssistant, Call: &earlierCall{kindCall, c.ID, c.Function.Name, c.Function.Arguments},
		})
	}
	return all, err
}

// read builds the request's question.
func (c *chatRequest) read(r *http.Request) (*asked, error) {
	q := &asked{stop: c.Stop}
	q.sampling.ReasoningEffort = c.ReasoningEffort
	switch {
	case c.N != nil && *c.N != 1:
		return nil, problem.Bad("n", "this server gives one choice: omit n")
	case len(c.Functions) > 0:
		return nil, problem.Bad("functions", "functions is the form of older clients: give tools")
	case c.Logprobs:
		return nil, problem.Bad("logprobs", "this server has no logprobs: omit the member")
	case len(c.Stop) > 4:
		return nil, problem.Bad("stop", "there are %d texts, more than 4", len(c.Stop))
	}

	for _, m := range c.Modalities {
		if m != "text" {
			return nil, problem.Bad("modalities", "this server answers with text: omit %.40q", m)
		}
	}
	if err := c.shared.read(r, q); err != nil {
		return nil, err
	}

	for i := range c.Messages {
		turns, err := c.Messages[i].turns(fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return nil, err
		}
		q.turns = append(q.turns, turns...)
	}
	if err := q.readTokens(cmp.Or(c.MaxCompletionTokens, c.MaxTokens), "max_completion_tokens"); err != nil {
		return nil, err
	}
	if err := q.readFormat(c.Format, "response_format"); err != nil {
		return nil, err
	}
	if err := q.check("messages"); err != nil {
		return nil, err
	}
	err := q.offer(&c.shared)
	return q, err
}

// chunk is a chat completion or a part of one.
type chunk struct {
	ID      string     `json:"id"`
	Object  string     `json:"object"`
	Created int64      `json:"created"`
	Model   string     `json:"model"`
	Choices []choice   `json:"choices"`
	Usage   *chatUsage `json:"usage,omitempty"`
	RLM     *details   `json:"rlm,omitempty"`
}

type choice struct {
	Index        int         `json:"index"`
	Message      *chatAnswer `json:"message,omitempty"`
	Delta        *chatAnswer `json:"delta,omitempty"`
	Logprobs     *struct{}   `json:"logprobs"`
	FinishReason *string     `json:"finish_reason"`
}

type chatAnswer struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Refusal   *string    `json:"refusal,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

// say returns the answer as a message, or the part of it that a stream has not sent.
func (got *answered) say(id string, isStream, wasSent bool) *chatAnswer {
	a := &chatAnswer{}
	if !wasSent && (got.text != "" || len(got.calls) == 0) {
		a.Content = &got.text
	}
	for i, c := range got.calls {
		one := chatCall{Type: kindFunction, Function: c}
		one.ID = fmt.Sprintf("call_%s_%d", strings.TrimPrefix(id, "chatcmpl-"), i)
		if isStream {
			one.Index = &i
		}
		a.ToolCalls = append(a.ToolCalls, one)
	}
	return a
}

// completeChat answers POST /v1/chat/completions.
func (a *API) completeChat(w http.ResponseWriter, r *http.Request) error {
	var c chatRequest
	if err := readJSON(r, &c); err != nil {
		return err
	}
	q, err := c.read(r)
	if err != nil {
		return err
	}
	base := chunk{
		ID: runs.NewID("chatcmpl-"), Object: "chat.completion", Created: time.Now().Unix(), Model: c.Model,
	}
	work := a.begin(r.Context(), access.Caller(r.Context()), q)
	if !c.Stream {
		got, finish, err := work(nil)
		if err != nil {
			return err
		}
		w.Header().Set(gate.ObjectHeader, cmp.Or(got.details.Run, base.ID))
		message := got.say(base.ID, false, false)
		message.Role = "assistant"
		base.Choices = []choice{{Message: message, FinishReason: &finish}}
		base.finish(&got)
		writeJSON(w, http.StatusOK, base)
		return nil
	}

	base.Object = "chat.completion.chunk"
	withUsage := c.StreamOptions != nil && c.StreamOptions.IncludeUsage
	return (&chatStream{w: w, base: base}).send(r.Context(), work, withUsage)
}

func (c *chunk) finish(got *answered) {
	c.Usage = &chatUsage{got.in, got.out, got.in + got.out}
	c.RLM = &got.details
}

// begin returns a function that returns the answer to a question, and why it ended. Stream, if
// set, receives the pieces of a direct answer; an empty piece starts over.
func (a *API) begin(
	ctx context.Context, k access.Key, q *asked,
) func(stream func(string)) (answered, string, error) {
	if q.isDirect(a.Long) {
		return func(stream func(string)) (answered, string, error) {
			ask := q.ask()
			if len(q.Schema) == 0 { // pieces of other answers may be wrapped
				ask.Stream = stream
			}
			reply, err := a.Runs.Ask(ctx, k, ask)
			got := describeReply(&reply)
			return q.finish(got, finishOf(reply.Finish), err)
		}
	}

	return func(func(string)) (answered, string, error) {
		record, err := a.start(ctx, k, q)
		if err != nil {
			return answered{}, "", err
		}
		got, err := a.wait(ctx, k.Tenant, record.ID)
		finish := "stop"
		if got.incomplete != "" {
			finish = "length"
		}
		return q.finish(got, finish, err)
	}
}

// finish extracts the calls to the client's functions from an answer, and returns why it ended.
func (q *asked) finish(got answered, finish string, err error) (answered, string, error) {
	if err == nil && finish == "stop" {
		err = q.functions.split(&got)
	}
	if len(got.calls) > 0 {
		finish = "tool_calls"
	}
	return got, finish, err
}

func describeReply(reply *runs.Reply) answered {
	return answered{
		text: reply.Text, in: reply.Usage.InputTokens, out: reply.Usage.OutputTokens,
		details: details{Calls: reply.Spent.Calls, USD: reply.Spent.USD},
	}
}

// start begins a run for a question.
func (a *API) start(ctx context.Context, k access.Key, q *asked) (runs.Record, error) {
	request, err := a.request(ctx, k.Tenant, q)
	if err != nil {
		return runs.Record{}, err
	}
	return a.Runs.Start(ctx, k, request)
}

// wait waits for the end of a run, and cancels it if the client goes away first.
func (a *API) wait(ctx context.Context, tenant, id string) (answered, error) {
	record, err := a.Runs.Wait(ctx, tenant, id)
	if err != nil {
		if ctx.Err() != nil {
			if failed := a.Runs.Cancel(context.WithoutCancel(ctx), tenant, id); failed != nil {
				a.Log.Error("cannot cancel a run whose client has gone away", "run", id, "error", failed)
			}
		}
		return answered{}, err
	}

	return outcome(&record)
}

// chatStream sends a chat completion in pieces.
type chatStream struct {
	w      http.ResponseWriter
	base   chunk
	stream *sse.Stream
	broken bool // the answer started over after a piece was sent
	sent   bool
	failed error
}

// piece is a part of a model's answer, or its end.
type piece struct {
	text   string
	end    bool
	got    answered
	finish string
	err    error
}

// send sends the answer that work produces. The status of an error becomes the response's status
// if nothing was sent before it.
func (s *chatStream) send(
	ctx context.Context, work func(func(string)) (answered, string, error), withUsage bool,
) error {
	pieces, gone := make(chan piece), make(chan struct{})
	defer close(gone)
	pass := func(p piece) {
		select {
		case pieces <- p:
		case <-gone:
		}
	}

	go func() {
		got, finish, err := work(func(text string) { pass(piece{text: text}) })
		pass(piece{end: true, got: got, finish: finish, err: err})
	}()

	beat := time.NewTicker(sse.Heartbeat)
	defer beat.Stop()
	for s.failed == nil {
		select {
		case <-ctx.Done():
			return nil // the client has gone away, and work ends with it
		case <-beat.C:
			s.open()
			s.failed = s.stream.Comment()
		case p := <-pieces:
			if !p.end {
				s.add(p.text)
				continue
			}
			return s.end(&p, withUsage)
		}
	}
	return nil
}

// open sends the head and the role.
func (s *chatStream) open() {
	if s.stream == nil {
		s.stream = sse.Begin(s.w)
		empty := ""
		s.write(choice{Delta: &chatAnswer{Role: "assistant", Content: &empty}})
	}
}

// add sends a piece of the text.
func (s *chatStream) add(text string) {
	s.broken = s.broken || text == "" && s.sent
	if text == "" || s.broken {
		return
	}
	s.open()
	s.sent = true
	s.write(choice{Delta: &chatAnswer{Content: &text}})
}

func (s *chatStream) write(choices ...choice) {
	s.base.Choices = append([]choice{}, choices...)
	s.event(s.base)
}

func (s *chatStream) event(value any) {
	data, err := marshal(value)
	if err == nil {
		err = s.stream.Write(sse.Event{Data: data})
	}

	if err == nil {
		err = s.stream.Flush()
	}
	if s.failed == nil {
		s.failed = err
	}
}

// end sends the end of the answer.
func (s *chatStream) end(p *piece, withUsage bool) error {
	if s.broken && p.err == nil {
		p.err = problem.New(http.StatusBadGateway, "model_failed", "the model's server broke off: ask again")
	}
	if p.err != nil && s.stream == nil {
		return p.err
	}
	s.open()
	if p.err != nil {
		s.event(describeError(failures.Of(p.err)))
		return nil //nolint:nilerr // it was sent
	}

	if rest := p.got.say(s.base.ID, true, s.sent); rest.Content != nil || len(rest.ToolCalls) > 0 {
		s.write(choice{Delta: rest})
	}
	s.base.RLM = &p.got.details
	s.write(choice{Delta: &chatAnswer{}, FinishReason: &p.finish})
	if withUsage {
		s.base.finish(&p.got)
		s.write()
	}
	if s.failed == nil {
		s.failed = s.stream.Write(sse.Event{Data: []byte("[DONE]")})
	}
	return nil
}
