package anthropic

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// message is a whole reply, or the frame of a streamed one.
type message struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Model   string `json:"model"`
	Content httpclient.List[struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}] `json:"content"`
	StopReason string `json:"stop_reason"`
	// Usage is decoded later: invalid numbers must not lose the text.
	Usage json.RawMessage `json:"usage"`
}

// event is one event of a streamed reply.
type event struct {
	Type    string  `json:"type"`
	Message message `json:"message"` // message_start
	Delta   struct {
		Type       string `json:"type"`
		Text       string `json:"text"`        // content_block_delta
		StopReason string `json:"stop_reason"` // message_delta
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"` // message_delta
}

// usage is what the call used, as the server reports it, with the three parts of the input
// separate. A missing field is nil, because later events repeat only some fields.
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
	text     strings.Builder
	finish   string
	input    int64 // neither read from the cache nor written to it
	usage    llm.Usage
	badUsage bool
}

// ReadWhole implements [chat.Reader].
func (r *reader) ReadWhole(body io.Reader) error {
	var in message
	if err := httpclient.ReadJSON(body, &in); err != nil {
		return err
	}
	if in.Type != "message" {
		return &llm.Error{Kind: kind.ErrMalformed, Message: "the reply is not a message"}
	}

	r.addMessage(in)
	r.finish = in.StopReason
	return nil
}

// addMessage adds a whole reply, or the frame of one.
func (r *reader) addMessage(in message) {
	r.id, r.model = in.ID, in.Model
	r.addUsage(in.Usage)
	for _, block := range in.Content {
		if block.Type == "text" {
			r.text.WriteString(block.Text)
		}
	}
}

// addUsage adds the usage reported so far.
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

// update replaces a number if there is a new one.
func update(number, with *int64) {
	if with != nil {
		*number = *with
	}
}

// ReadEvent implements [chat.Reader]. It skips unknown events, as the format requires.
func (r *reader) ReadEvent(data []byte) (text string, err error) {
	var in event
	if err := json.Unmarshal(data, &in); err != nil {
		return "", &llm.Error{Kind: kind.ErrMalformed, Err: err}
	}

	switch in.Type {
	case "error":
		return "", httpclient.ParseFailure(data)
	case "message_start":
		r.addMessage(in.Message)
	case "content_block_delta":
		r.text.WriteString(in.Delta.Text)
		return in.Delta.Text, nil
	case "message_delta":
		if in.Delta.StopReason != "" {
			r.finish = in.Delta.StopReason
		}
		r.addUsage(in.Usage)
	case "message_stop":
		return "", httpclient.ErrDone
	}
	return "", nil
}

// finishReasons maps this server's stop reasons to the common ones.
var finishReasons = map[string]string{
	"end_turn":                      llm.FinishStop,
	"stop_sequence":                 llm.FinishStop,
	"max_tokens":                    llm.FinishLength,
	"model_context_window_exceeded": llm.FinishLength,
	"refusal":                       llm.FinishRefusal,
}

// Reply implements [chat.Reader].
func (r *reader) Reply() chat.Reply {
	used := r.usage
	used.InputTokens = r.input + used.CachedTokens + used.CacheWriteTokens
	if r.badUsage || r.input < 0 {
		used = llm.Usage{}
	}

	finish := r.finish
	if reason, ok := finishReasons[finish]; ok {
		finish = reason
	}
	return chat.Reply{
		Text: r.text.String(), ID: r.id, Model: r.model, Finish: finish, Usage: used,
	}
}
