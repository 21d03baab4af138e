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
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sse"
	"github.com/rlmhq/rlm/server/internal/wire"
)

// chatRequest is the body of POST /v1/chat/completions.
type chatRequest struct {
	shared

	Messages      []chatMessage `json:"messages"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *whole            `json:"max_tokens"`
	MaxCompletionTokens *whole            `json:"max_completion_tokens"`
	ReasoningEffort     string            `json:"reasoning_effort"`
	Stop                words             `json:"stop"`
	N                   *whole            `json:"n"`
	Format              *format           `json:"response_format"`
	Functions           []json.RawMessage `json:"functions"`
	Logprobs            bool              `json:"logprobs"`
	Modalities          []string          `json:"modalities"`

	// The following members belong to responses, but Cursor also sends them to chat completions.
	Input           input  `json:"input"`
	Instructions    string `json:"instructions"`
	MaxOutputTokens *whole `json:"max_output_tokens"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// chatCall is a call of a client's function.
type chatCall struct {
	Index    *whole      `json:"index,omitempty"` // in a stream
	ID       string      `json:"id"`
	Type     string      `json:"type"`
	Function *call       `json:"function,omitempty"`
	Custom   *customCall `json:"custom,omitempty"`
}

// customCall is a call of a custom tool.
type customCall struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// turns converts the message, and the calls that it requests, to messages of a conversation.
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
		one := call{ID: c.ID}
		switch {
		case c.Custom != nil:
			one.kind, one.Name, one.Arguments = kindCustom, c.Custom.Name, c.Custom.Input
		case c.Function != nil:
			one.Name, one.Arguments = c.Function.Name, c.Function.Arguments
		default:
			return nil, problem.Bad(param+".tool_calls", "a call has neither a function nor a custom tool")
		}
		all = append(all, one.turn())
	}
	return all, err
}

// read converts the request to a question.
func (c *chatRequest) read(r *http.Request, find lookUp) (*asked, error) {
	q := &asked{stop: c.Stop}
	q.System = c.Instructions
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
	if len(c.Messages) == 0 {
		turns, err := c.Input.turns(find)
		if err != nil {
			return nil, err
		}
		q.turns = turns
	}
	limit := cmp.Or(c.MaxCompletionTokens, c.MaxTokens, c.MaxOutputTokens)
	if err := q.readTokens(limit, "max_completion_tokens"); err != nil {
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

// say returns the answer as a message. For a stream, it returns only the part that was not sent
// yet.
func (got *answered) say(id string, isStream, wasSent bool) *chatAnswer {
	a := &chatAnswer{}
	if !wasSent && (got.text != "" || len(got.calls) == 0) {
		a.Content = &got.text
	}
	for i, c := range got.calls {
		one := chatCall{Type: kindFunction, Function: &call{Name: c.Name, Arguments: c.Arguments}}
		if c.kind == kindCustom && c.isNested {
			one = chatCall{Type: kindCustom, Custom: &customCall{c.Name, c.Arguments}}
		}
		one.ID = fmt.Sprintf("call_%s_%d", strings.TrimPrefix(id, "chatcmpl-"), i)
		if isStream {
			at := whole(i)
			one.Index = &at
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
	ctx, k := r.Context(), access.Caller(r.Context())
	q, err := c.read(r, a.lookUp(ctx, k.Tenant))
	if err != nil {
		return err
	}
	base := chunk{
		ID: runs.NewID("chatcmpl-"), Object: "chat.completion", Created: time.Now().Unix(), Model: c.Model,
	}
	do, err := a.workOnce(ctx, k, q, &base)
	if err != nil {
		return err
	}
	if !c.Stream {
		got, finish, err := do(nil, nil)
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
	return (&chatStream{w: w, base: base, withUsage: withUsage}).send(ctx, do)
}

func (c *chunk) finish(got *answered) {
	c.Usage = &chatUsage{got.in, got.out, got.in + got.out}
	c.RLM = &got.details
}

// work returns the answer to a question, and its finish reason. Stream, if set, receives the pieces
// of a direct answer; an empty piece means that the text starts over. Accepted, if set, is called
// before the work waits for other work.
type work func(stream func(string), accepted func()) (answered, string, error)

// begin returns the work that answers a question.
func (a *API) begin(ctx context.Context, k access.Key, q *asked) work {
	if q.isDirect(a.Long) {
		return func(stream func(string), accepted func()) (answered, string, error) {
			ask := q.ask()
			ask.Accepted = accepted
			if len(q.Schema) == 0 { // answers with a contract may be wrapped in JSON
				ask.Stream = stream
			}
			reply, err := a.Runs.Ask(ctx, k, ask)
			got := describeReply(&reply)
			return q.finish(got, finishOf(reply.Finish), err)
		}
	}

	return func(_ func(string), accepted func()) (answered, string, error) {
		record, err := a.start(ctx, k, q)
		if err != nil {
			return answered{}, "", err
		}
		if accepted != nil {
			accepted()
		}
		got, err := a.wait(ctx, k.Tenant, record.ID)
		finish := "stop"
		if got.incomplete != "" {
			finish = "length"
		}
		return q.finish(got, finish, err)
	}
}

// finish extracts the calls of the client's functions from an answer, and returns its finish
// reason.
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
		text: reply.Text, isPlain: reply.IsWords, in: reply.Usage.InputTokens, out: reply.Usage.OutputTokens,
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

// wait waits for the end of a run, and cancels it if its last client goes away first.
func (a *API) wait(ctx context.Context, tenant, id string) (answered, error) {
	leave := a.waiting.enter(id)
	record, err := a.Runs.Wait(ctx, tenant, id)
	if isLast := leave(); err != nil {
		if ctx.Err() != nil && isLast {
			if failed := a.Runs.Abandon(context.WithoutCancel(ctx), tenant, id); failed != nil {
				a.Log.Error("cannot cancel a run whose client has gone away", "run", id, "error", failed)
			}
		}
		return answered{}, err
	}

	return outcome(&record)
}

// chatStream sends a chat completion in pieces.
type chatStream struct {
	w         http.ResponseWriter
	base      chunk
	withUsage bool
	stream    *sse.Stream
	sent      bool
	failed    error
}

// finished is an answer with its finish reason.
type finished struct {
	answered

	finish string
}

// send sends the answer that work produces. If the work was not accepted, the status of the error
// becomes that of the response.
func (s *chatStream) send(ctx context.Context, do work) error {
	return wire.Listen(ctx, func(stream func(string), accepted func()) (finished, error) {
		got, finish, err := do(stream, accepted)
		return finished{got, finish}, err
	}, s)
}

// Begin implements [wire.Listener].
func (s *chatStream) Begin() error {
	s.open()
	return s.failed
}

// Beat implements [wire.Listener].
func (s *chatStream) Beat() error {
	if s.open(); s.failed != nil {
		return s.failed
	}
	return s.stream.Comment()
}

// open sends the head of the response and the role.
func (s *chatStream) open() {
	if s.stream == nil {
		s.stream = sse.Begin(s.w)
		empty := ""
		s.write(choice{Delta: &chatAnswer{Role: "assistant", Content: &empty}})
	}
}

// Add implements [wire.Listener].
func (s *chatStream) Add(text string) error {
	s.open()
	s.sent = true
	s.write(choice{Delta: &chatAnswer{Content: &text}})
	return s.failed
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

// End implements [wire.Listener].
func (s *chatStream) End(got finished, err error) error {
	if err != nil && s.stream == nil {
		return err
	}
	s.open()
	if err != nil {
		s.event(describeError(failures.Of(err)))
		return nil // the error was sent
	}

	if rest := got.say(s.base.ID, true, s.sent); rest.Content != nil || len(rest.ToolCalls) > 0 {
		s.write(choice{Delta: rest})
	}
	s.base.RLM = &got.details
	s.write(choice{Delta: &chatAnswer{}, FinishReason: &got.finish})
	if s.withUsage {
		s.base.finish(&got.answered)
		s.write()
	}
	if s.failed == nil {
		s.failed = s.stream.Write(sse.Event{Data: []byte("[DONE]")})
	}
	return nil
}
