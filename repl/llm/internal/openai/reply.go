package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/finish"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// completion is a whole reply, or one event of a streamed one.
type completion struct {
	ID      httpclient.Word         `json:"id"`
	Model   httpclient.Word         `json:"model"`
	Choices httpclient.List[choice] `json:"choices"`
	// Usage is decoded later, so that invalid numbers do not lose the text.
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
	bareError
}

// bareError contains the members of an error at the top level of a reply: older versions of vLLM,
// gateways and Qianfan send one in place of choices.
type bareError struct {
	Object  httpclient.Word `json:"object"`
	Type    httpclient.Word `json:"type"`
	Message httpclient.Word `json:"message"`
	Code    json.RawMessage `json:"code,omitempty"`
	Detail  json.RawMessage `json:"detail,omitempty"`

	ErrorCode json.RawMessage `json:"error_code,omitempty"`
	ErrorText httpclient.Word `json:"error_msg"`
}

// failure returns the error, or nil if there is none.
func (b *bareError) failure() error {
	isSet := func(raw json.RawMessage) bool {
		return !slices.Contains([]string{"", "null", "0", `""`, `"0"`, "false"}, string(raw))
	}
	isError := b.Object == "error" || strings.Contains(strings.ToLower(string(b.Type)), "error") ||
		b.Message != "" && isSet(b.Code) || isSet(b.Detail) || isSet(b.ErrorCode) || b.ErrorText != ""
	if !isError {
		return nil
	}

	text, err := json.Marshal(b)
	if err != nil {
		return &llm.Error{Kind: kind.ErrServer}
	}
	failure := httpclient.ParseFailure(text)
	failure.Message = cmp.Or(failure.Message, string(b.ErrorText), string(b.Detail))
	return failure
}

// choice is one of several alternatives. Requests ask for one, but some servers send more.
type choice struct {
	Index        *int            `json:"index"`   // if it is missing, the position in the list
	Text         content         `json:"text"`    // from servers of the older completions API
	Message      words           `json:"message"` // set in a whole reply
	Delta        words           `json:"delta"`   // set in a streamed reply
	FinishReason string          `json:"finish_reason"`
	Error        json.RawMessage `json:"error"` // from OpenRouter, if the model's server failed
}

// words holds what the model said in a message or a delta.
type words struct {
	Content content         `json:"content"`
	Refusal httpclient.Word `json:"refusal"`
	Error   json.RawMessage `json:"error"` // from gateways

	ToolCalls httpclient.List[toolCall] `json:"tool_calls"`
}

// content is the text of a message: a string, or the text parts of a list. Parts of other types,
// such as thoughts and pictures, are left out.
type content string

// UnmarshalJSON decodes a string, a list of parts, or null for no text.
func (c *content) UnmarshalJSON(data []byte) error {
	*c = ""
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, (*string)(c))
	}

	var parts httpclient.List[part]
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range parts {
		if p.Type == "" || p.Type == "text" || p.Type == "output_text" {
			text.WriteString(p.Text)
		}
	}
	*c = content(text.String())
	return nil
}

// part is a part of a message.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// UnmarshalJSON decodes an object, or a string for its text.
func (p *part) UnmarshalJSON(data []byte) error {
	*p = part{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &p.Text)
	}
	type plain part
	return json.Unmarshal(data, (*plain)(p))
}

// usage is the number of tokens of a call, as the server reports it.
type usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	PromptDetails    struct {
		CachedTokens     int64 `json:"cached_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`

	// Cost is OpenRouter's price of the call in US dollars. With the user's own key for the model,
	// Cost is only the fee, and the details hold the rest.
	Cost        float64 `json:"cost"`
	IsOwnKey    bool    `json:"is_byok"`
	CostDetails struct {
		Upstream float64 `json:"upstream_inference_cost"`
	} `json:"cost_details"`
}

// NewReader implements [chat.Format].
func (f format) NewReader() chat.Reader { return &reader{} }

// reader implements [chat.Reader].
type reader struct {
	id      string
	model   string
	text    chat.Pieces
	refusal chat.Pieces
	isDelta bool // the text arrives as deltas, so a message repeats it
	index   *int // of the choice that is the reply; nil before the first one
	finish  string
	usage   llm.Usage
	calls   calls
}

// ReadWhole implements [chat.Reader].
func (r *reader) ReadWhole(body io.Reader) error {
	var in completion
	if err := httpclient.ReadJSON(body, &in); err != nil {
		return err
	}
	if err := r.add(in); err != nil {
		return err
	}

	if len(in.Choices) == 0 {
		return &llm.Error{Kind: kind.ErrMalformed, Message: "the reply has no choices"}
	}
	return nil
}

// ReadEvent implements [chat.Reader].
func (r *reader) ReadEvent(data []byte) error {
	var in completion
	if err := json.Unmarshal(data, &in); err != nil {
		return &llm.Error{Kind: kind.ErrMalformed, Err: err}
	}
	return r.add(in)
}

// add adds a completion.
func (r *reader) add(in completion) error {
	if err := parseError(in.Error); err != nil {
		return err
	}
	if len(in.Choices) == 0 {
		if err := in.failure(); err != nil {
			return err
		}
	}
	if in.Model != "" {
		r.model = string(in.Model)
	}
	if in.ID != "" {
		r.id = string(in.ID)
	}

	r.addUsage(in.Usage)

	c := r.pick(in.Choices)
	if c == nil {
		return nil
	}
	if c.Message.Content == "" && c.Delta.Content == "" {
		c.Delta.Content = c.Text
	}
	r.addWords(c.Delta, c.Message)
	if err := errors.Join(r.calls.addDelta(c.Delta.ToolCalls), r.calls.addMessage(c.Message.ToolCalls)); err != nil {
		return err
	}
	r.finish = finish.Merge(r.finish, c.FinishReason)
	return errors.Join(parseError(c.Error), parseError(c.Delta.Error), parseError(c.Message.Error))
}

// parseError returns the error in a completion or in a choice, or nil if there is none.
func parseError(raw json.RawMessage) error {
	switch string(raw) {
	case "", "null", "false", `""`, "{}":
		return nil
	}
	return httpclient.ParseFailure([]byte(`{"error":` + string(raw) + `}`))
}

// pick returns the choice that is the reply, or nil if that choice is not one of these. The reply
// is the choice with the index 0, or else the first that arrived.
func (r *reader) pick(choices []choice) *choice {
	indexes := make([]int, len(choices))
	for i := range choices {
		indexes[i] = i
		if given := choices[i].Index; given != nil {
			indexes[i] = *given
		}
	}
	switch hasFirst := slices.Contains(indexes, 0); {
	case len(choices) == 0:
	case r.index == nil || hasFirst && *r.index != 0:
		first := indexes[0]
		if hasFirst {
			first = 0
		}
		// The text of another choice is not part of the reply.
		*r = reader{id: r.id, model: r.model, usage: r.usage, index: &first}
	}

	for i := range choices {
		if indexes[i] == *r.index {
			return &choices[i]
		}
	}
	return nil
}

// addWords adds the words of a choice. Some servers send the whole message in addition to the
// deltas.
func (r *reader) addWords(delta, message words) {
	if delta.Content != "" || delta.Refusal != "" {
		r.isDelta = true
	}
	r.text.Add(string(delta.Content))
	r.refusal.Add(string(delta.Refusal))

	if r.isDelta {
		r.text.Compare(string(message.Content))
		r.refusal.Compare(string(message.Refusal))
		return
	}

	r.text.Add(string(message.Content))
	r.refusal.Add(string(message.Refusal))
}

// addUsage adds the usage of a completion, if it has one that can be decoded.
func (r *reader) addUsage(raw json.RawMessage) {
	var in usage
	if json.Unmarshal(raw, &in) != nil || in == (usage{}) {
		return
	}
	r.usage = llm.Usage{
		InputTokens:      in.PromptTokens,
		OutputTokens:     in.CompletionTokens,
		CachedTokens:     in.PromptDetails.CachedTokens,
		CacheWriteTokens: in.PromptDetails.CacheWriteTokens,
		ReasoningTokens:  in.CompletionDetails.ReasoningTokens,
		USD:              in.Cost,
	}
	if in.IsOwnKey {
		r.usage.USD += in.CostDetails.Upstream
	}
}

// Reply implements [chat.Reader].
func (r *reader) Reply() chat.Reply {
	return chat.Reply{
		Calls: r.calls.whole(),
		Text:  r.text.Text(), Settled: r.text.Settled(), Refusal: r.refusal.Text(),
		ID: r.id, Model: r.model, Finish: r.finish, Usage: r.usage,
		Unclear: r.text.IsUnclear() || r.refusal.IsUnclear() || r.calls.isUnclear(),
	}
}
