package anthropic

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/finish"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// message is a whole reply, or the frame of a streamed one.
type message struct {
	Type    string                   `json:"type"`
	ID      httpclient.Word          `json:"id"`
	Model   httpclient.Word          `json:"model"`
	Content httpclient.List[content] `json:"content"`
	ending
	// Usage is decoded later, so that invalid numbers do not lose the text.
	Usage json.RawMessage `json:"usage"`
}

// ending holds the reason why a reply ended.
type ending struct {
	StopReason  string `json:"stop_reason"`
	StopDetails struct {
		Explanation string `json:"explanation"` // of a refusal
	} `json:"stop_details"`
}

// event is one event of a streamed reply.
type event struct {
	Type    string  `json:"type"`
	Index   int     `json:"index"`   // of the block
	Message message `json:"message"` // message_start
	Delta   struct {
		Type   string `json:"type"`
		Text   string `json:"text"`         // content_block_delta
		Input  string `json:"partial_json"` // the same, of a call
		ending        // message_delta
	} `json:"delta"`
	// Block is set in content_block_start. Anthropic leaves its text empty; other servers begin the
	// text here.
	Block content         `json:"content_block"`
	Usage json.RawMessage `json:"usage"` // message_delta
	Error json.RawMessage `json:"error"`
}

// usage is the number of tokens of a call, as the server reports it, with the three parts of the
// input separate. A missing field is nil, because later events repeat only some fields.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Details    *struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// NewReader implements [chat.Format].
func (format) NewReader() chat.Reader { return &reader{} }

// reader implements [chat.Reader].
type reader struct {
	id       string
	model    string
	text     chat.Pieces
	calls    calls
	refusal  string
	finish   string
	input    int64 // without tokens read from or written to the cache
	usage    llm.Usage
	badUsage bool
	isBegun  bool // a stream
}

// ReadWhole implements [chat.Reader].
func (r *reader) ReadWhole(body io.Reader) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var in message
	if err := httpclient.Decode(text, &in); err != nil {
		return err
	}
	if in.Type == "error" {
		return httpclient.ParseFailure(text)
	}
	if in.Type != "message" {
		return &llm.Error{Kind: kind.ErrMalformed, Message: "the reply is not a message"}
	}

	r.addEnding(in.ending)
	return r.addMessage(in)
}

// addMessage adds a whole reply, or the frame of one.
func (r *reader) addMessage(in message) error {
	r.id, r.model = string(in.ID), string(in.Model)
	r.addUsage(in.Usage)

	var text strings.Builder
	if len(in.Content) > 0 {
		r.calls = nil // some servers repeat a streamed reply as a whole
	}
	for i := range in.Content {
		if in.Content[i].Type == "text" {
			text.WriteString(in.Content[i].Text)
		}
		if err := r.calls.begin(i, &in.Content[i]); err != nil {
			return err
		}
	}
	r.text.Add(text.String())
	return nil
}

// addEnding adds the reason why the reply ended.
func (r *reader) addEnding(in ending) {
	r.finish = finish.Merge(r.finish, in.StopReason)
	if why := in.StopDetails.Explanation; why != "" {
		r.refusal = why
	}
}

// addUsage adds the usage in an event.
func (r *reader) addUsage(raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	var in usage
	if json.Unmarshal(raw, &in) != nil {
		r.badUsage = true
		return
	}

	update(&r.input, in.Input)
	update(&r.usage.CacheWriteTokens, in.CacheWrite)
	update(&r.usage.CachedTokens, in.CacheRead)
	update(&r.usage.OutputTokens, in.Output)
	if in.Details != nil {
		update(&r.usage.ReasoningTokens, in.Details.Thinking)
	}
}

// update replaces a number if with is not nil.
func update(number, with *int64) {
	if with != nil {
		*number = *with
	}
}

// ReadEvent implements [chat.Reader]. It skips unknown events, as the format requires.
func (r *reader) ReadEvent(data []byte) error {
	var in event
	if err := json.Unmarshal(data, &in); err != nil {
		return &llm.Error{Kind: kind.ErrMalformed, Err: err}
	}

	if in.Type == "error" || len(in.Error) > 0 && string(in.Error) != "null" {
		return httpclient.ParseFailure(data)
	}

	switch in.Type {
	case "message": // a whole reply as one event
		return r.ReadWhole(bytes.NewReader(data))
	case "message_start":
		if r.isBegun {
			return &llm.Error{Kind: kind.ErrMalformed, Message: "the stream begins a second message"}
		}
		r.isBegun = true
		return r.addMessage(in.Message)
	case "content_block_start":
		r.text.Add(in.Block.Text)
		return r.calls.begin(in.Index, &in.Block)
	case "content_block_delta":
		r.text.Add(in.Delta.Text)
		r.calls.addDelta(in.Index, in.Delta.Input)
	case "message_delta":
		r.addEnding(in.Delta.ending)
		r.addUsage(in.Usage)
	case "message_stop":
		return httpclient.ErrDone
	}
	return nil
}

// Reply implements [chat.Reader].
func (r *reader) Reply() chat.Reply {
	used := r.usage
	used.InputTokens = r.input + used.CachedTokens + used.CacheWriteTokens
	if r.badUsage || r.input < 0 {
		used = llm.Usage{}
	}
	return chat.Reply{
		Text: r.text.Text(), Settled: r.text.Settled(), Refusal: r.refusal,
		ID: r.id, Model: r.model, Finish: r.finish, Usage: used,
		Calls: r.calls.whole(), Unclear: r.text.IsUnclear() || r.calls.isUnclear(),
	}
}
