package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/openai"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sse"
	"github.com/rlmhq/rlm/server/internal/wire"
)

// fields are the members of an object.
type fields = map[string]any

// answer is a message of the model.
type answer struct {
	ID           string   `json:"id"`
	Type         string   `json:"type"`
	Role         string   `json:"role"`
	Model        string   `json:"model"`
	Content      []fields `json:"content"`
	StopReason   *string  `json:"stop_reason"`
	StopSequence *string  `json:"stop_sequence"`
	Usage        usage    `json:"usage"`
	RLM          any      `json:"rlm,omitempty"`
}

// usage counts tokens. The number of tokens from a cache is unknown.
type usage struct {
	InputTokens              int64  `json:"input_tokens"`
	OutputTokens             int64  `json:"output_tokens"`
	CacheCreationInputTokens *int64 `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     *int64 `json:"cache_read_input_tokens"`
}

// stopReason returns why an answer ended, in Anthropic's terms.
func stopReason(finish string) string {
	switch finish {
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return "end_turn"
}

// createMessage answers POST /v1/messages.
func (a *API) createMessage(w http.ResponseWriter, r *http.Request) error {
	q, err := a.read(r)
	if err != nil {
		return err
	}
	base := answer{Type: "message", Role: "assistant", Model: q.model, Content: []fields{}}
	if q.isStream {
		if base.Usage.InputTokens, err = q.CountTokens(r.Context()); err != nil {
			return err
		}
	}
	if err := q.Begin(r.Context(), runs.NewID("msg_"), q.model); err != nil {
		return err
	}
	base.ID = q.ID
	w.Header().Set("Request-Id", gate.ID(r.Context()))

	if q.isStream {
		return wire.Listen(r.Context(), q.Answer, &stream{w: w, r: r, base: base})
	}
	got, err := q.Answer(nil, nil)
	if err != nil {
		return err
	}
	w.Header().Set(gate.ObjectHeader, cmp.Or(got.Run, base.ID))
	wire.WriteJSON(w, http.StatusOK, base.with(&got))
	return nil
}

// with returns the message with its answer.
func (a answer) with(got *openai.Answer) answer {
	if got.Text != "" {
		a.Content = append(a.Content, fields{"type": "text", "text": got.Text})
	}
	for i := range got.Calls {
		a.Content = append(a.Content, a.call(got, i, json.RawMessage(cmp.Or(got.Calls[i].Arguments, "{}"))))
	}

	reason := stopReason(got.Finish)
	a.StopReason, a.Usage, a.RLM = &reason, usageOf(got), got.Details
	return a
}

// call returns the block for a call of a client's function.
func (a *answer) call(got *openai.Answer, i int, input json.RawMessage) fields {
	id := fmt.Sprintf("toolu_%s_%d", strings.TrimPrefix(a.ID, "msg_"), i)
	return fields{"type": "tool_use", "id": id, "name": got.Calls[i].Name, "input": input}
}

func usageOf(got *openai.Answer) usage {
	return usage{InputTokens: got.InputTokens, OutputTokens: got.OutputTokens}
}

// stream sends a message in pieces.
type stream struct {
	w      http.ResponseWriter
	r      *http.Request
	base   answer
	events *sse.Stream
	blocks int  // number of begun blocks
	inText bool // the last block is an unfinished text
	failed error
}

// Begin implements [wire.Listener].
func (s *stream) Begin() error {
	s.open()
	return s.flush()
}

// Beat implements [wire.Listener].
func (s *stream) Beat() error {
	s.open()
	s.event("ping", fields{})
	return s.flush()
}

// Add implements [wire.Listener].
func (s *stream) Add(text string) error {
	s.open()
	if !s.inText {
		s.begin(fields{"type": "text", "text": ""})
		s.inText = true
	}
	s.delta(fields{"type": "text_delta", "text": text})
	return s.flush()
}

// End implements [wire.Listener].
func (s *stream) End(got openai.Answer, err error) error {
	if err != nil && s.events == nil {
		return err
	}
	s.open()
	if err != nil {
		described := describeError(s.r, failures.Of(err))
		s.event("error", fields{"error": described.Error, "request_id": described.RequestID})
		_ = s.flush() // fails if the client has gone away
		return nil
	}

	if s.blocks == 0 && got.Text != "" {
		_ = s.Add(got.Text) // fails if the client has gone away, as later events do
	}
	s.finish()
	for i := range got.Calls {
		s.begin(s.base.call(&got, i, json.RawMessage("{}")))
		s.delta(fields{"type": "input_json_delta", "partial_json": got.Calls[i].Arguments})
		s.event("content_block_stop", fields{"index": s.blocks - 1})
	}

	s.event("message_delta", fields{
		"delta": fields{"stop_reason": stopReason(got.Finish), "stop_sequence": nil},
		"usage": usageOf(&got), "rlm": got.Details,
	})
	s.event("message_stop", fields{})
	_ = s.flush() // fails if the client has gone away
	return nil
}

// open sends the head of the response, and the message without its content.
func (s *stream) open() {
	if s.events != nil {
		return
	}
	s.events = sse.Begin(s.w)
	s.event("message_start", fields{"message": s.base})
}

// begin begins a block.
func (s *stream) begin(block fields) {
	s.event("content_block_start", fields{"index": s.blocks, "content_block": block})
	s.blocks++
}

// delta sends a piece of the last block.
func (s *stream) delta(piece fields) {
	s.event("content_block_delta", fields{"index": s.blocks - 1, "delta": piece})
}

// finish ends the current text block, if any.
func (s *stream) finish() {
	if s.inText {
		s.event("content_block_stop", fields{"index": s.blocks - 1})
	}
	s.inText = false
}

// event sends an event, whose data also has its name.
func (s *stream) event(name string, data fields) {
	data["type"] = name
	body, err := wire.Marshal(data)
	if err == nil && s.failed == nil {
		err = s.events.Write(sse.Event{Name: name, Data: body})
	}
	if s.failed == nil {
		s.failed = err
	}
}

func (s *stream) flush() error {
	if s.failed == nil {
		s.failed = s.events.Flush()
	}
	return s.failed
}
