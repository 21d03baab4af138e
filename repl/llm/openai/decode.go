package openai

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

// reply is a whole reply, or one piece of a streamed one.
type reply struct {
	Model   string            `json:"model"`
	Choices httpclient.List[choice] `json:"choices"`
	Usage   json.RawMessage   `json:"usage"` // decoded apart: wrong numbers must not lose the text
	Error   json.RawMessage   `json:"error"`
}

// choice is one of the alternatives, of which only the first was asked for.
type choice struct {
	Index        int    `json:"index"`
	Message      words  `json:"message"`
	Delta        words  `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

// words are what the model said.
type words struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
}

// usage is what the call used, in the server's form.
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
}

// gathered is what has come of a reply.
type gathered struct {
	request llm.Request
	model   string
	text    strings.Builder
	refusal strings.Builder
	finish  string
	usage   llm.Usage
}

// readWhole reads a reply that comes in one piece.
func (g *gathered) readWhole(body io.Reader) error {
	var in reply
	if err := httpclient.ReadJSON(body, &in); err != nil {
		return err
	}
	if err := g.add(in, nil); err != nil {
		return err
	}
	if len(in.Choices) == 0 {
		return &llm.Error{Kind: llm.ErrMalformed, Message: "the reply has no choices"}
	}
	return nil
}

// readStream reads a reply that comes in pieces. One that ends without a reason
// was cut off.
func (g *gathered) readStream(body io.Reader, give func(string)) error {
	err := httpclient.ReadEvents(body, func(_, data string) error {
		if data == "[DONE]" {
			return httpclient.ErrDone
		}
		var in reply
		if err := httpclient.Decode([]byte(data), &in); err != nil {
			return &llm.Error{Kind: llm.ErrMalformed, Err: err}
		}
		return g.add(in, give)
	})
	if err == nil && g.finish == "" {
		err = &llm.Error{Kind: llm.ErrCut, Message: "the stream ended without a reason"}
	}
	return httpclient.Partial(err, g.request, g.text.String())
}

// add takes in a piece, and gives its text away if somebody wants it.
func (g *gathered) add(in reply, give func(string)) error {
	if len(in.Error) > 0 && string(in.Error) != "null" {
		return httpclient.Failure([]byte(`{"error":` + string(in.Error) + `}`))
	}
	if in.Model != "" {
		g.model = in.Model
	}
	var numbers usage
	if json.Unmarshal(in.Usage, &numbers) == nil && numbers != (usage{}) {
		g.usage = llm.Usage{
			InputTokens: numbers.PromptTokens, OutputTokens: numbers.CompletionTokens,
			CachedTokens: numbers.PromptDetails.CachedTokens, CacheWriteTokens: numbers.PromptDetails.CacheWriteTokens,
			ReasoningTokens: numbers.CompletionDetails.ReasoningTokens,
		}
	}
	for _, c := range in.Choices {
		if c.Index != 0 {
			continue
		}
		piece := c.Message.Content + c.Delta.Content
		g.text.WriteString(piece)
		g.refusal.WriteString(c.Message.Refusal + c.Delta.Refusal)
		if c.FinishReason != "" {
			g.finish = c.FinishReason
		}
		if give != nil && piece != "" {
			give(piece)
		}
	}
	return nil
}

// response returns the reply in this project's form.
func (g *gathered) response(outcome httpclient.Outcome) llm.Response {
	out := llm.Response{Text: g.text.String(), Model: g.model, Finish: g.finish, Attempts: outcome.Attempts}
	switch {
	case g.refusal.Len() > 0:
		out.Text, out.Finish = g.refusal.String(), llm.FinishRefusal
	case g.finish == "content_filter":
		out.Finish = llm.FinishRefusal
	}
	return httpclient.Finished(out, g.usage, g.request, outcome)
}
