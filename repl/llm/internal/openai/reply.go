package openai

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// completion is a whole reply, or one event of a streamed one.
type completion struct {
	ID      string                  `json:"id"`
	Model   string                  `json:"model"`
	Choices httpclient.List[choice] `json:"choices"`
	// Usage is decoded later: invalid numbers must not lose the text.
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// choice is one of several alternatives. Requests ask for only one.
type choice struct {
	Index        int    `json:"index"`
	Message      words  `json:"message"` // of a whole reply
	Delta        words  `json:"delta"`   // of a streamed one
	FinishReason string `json:"finish_reason"`
}

// words are the model's words.
type words struct {
	Content content `json:"content"`
	Refusal string  `json:"refusal"`
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

// usage is what the call used, as the server reports it.
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

	// Cost is OpenRouter's own price of the call in US dollars. With the user's own key for the
	// model, it is only the fee, and the details hold the rest.
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
	text    strings.Builder
	refusal strings.Builder
	finish  string
	usage   llm.Usage
}

// ReadWhole implements [chat.Reader].
func (r *reader) ReadWhole(body io.Reader) error {
	var in completion
	if err := httpclient.ReadJSON(body, &in); err != nil {
		return err
	}
	if _, err := r.add(in); err != nil {
		return err
	}
	if len(in.Choices) == 0 {
		return &llm.Error{Kind: kind.ErrMalformed, Message: "the reply has no choices"}
	}
	return nil
}

// ReadEvent implements [chat.Reader].
func (r *reader) ReadEvent(data []byte) (text string, err error) {
	if string(data) == "[DONE]" {
		return "", httpclient.ErrDone
	}

	var in completion
	if err := json.Unmarshal(data, &in); err != nil {
		return "", &llm.Error{Kind: kind.ErrMalformed, Err: err}
	}
	return r.add(in)
}

// add adds a completion and returns its text.
func (r *reader) add(in completion) (text string, err error) {
	if len(in.Error) > 0 && string(in.Error) != "null" {
		return "", httpclient.ParseFailure([]byte(`{"error":` + string(in.Error) + `}`))
	}
	if in.Model != "" {
		r.model = in.Model
	}
	if in.ID != "" {
		r.id = in.ID
	}
	r.addUsage(in.Usage)

	begin := r.text.Len()
	for _, c := range in.Choices {
		if c.Index != 0 {
			continue
		}
		r.text.WriteString(string(c.Message.Content + c.Delta.Content))
		r.refusal.WriteString(c.Message.Refusal + c.Delta.Refusal)
		if c.FinishReason != "" {
			r.finish = c.FinishReason
		}
	}
	return r.text.String()[begin:], nil
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
	finish := r.finish
	if finish == "content_filter" {
		finish = llm.FinishRefusal
	}
	return chat.Reply{
		Text: r.text.String(), Refusal: r.refusal.String(),
		ID: r.id, Model: r.model, Finish: finish, Usage: r.usage,
	}
}
