package anthropic

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

// message is a whole reply, and the frame of a streamed one.
type message struct {
	Type    string `json:"type"`
	Model   string `json:"model"`
	Content httpclient.List[struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}] `json:"content"`
	StopReason string          `json:"stop_reason"`
	Usage      json.RawMessage `json:"usage"` // decoded apart: wrong numbers must not lose the text
}

// event is one piece of a streamed reply.
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

// usage is what the call used, in the server's form: the three parts of the
// input apart. A field that is not there is nil, since later events repeat only some.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Details    *struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// gathered is what has come of a reply.
type gathered struct {
	request  llm.Request
	model    string
	text     strings.Builder
	finish   string
	input    int64 // neither read from the cache nor written to it
	usage    llm.Usage
	badUsage bool
}

// readWhole reads a reply that comes in one piece.
func (g *gathered) readWhole(body io.Reader) error {
	var in message
	if err := httpclient.ReadJSON(body, &in); err != nil {
		return err
	}
	if in.Type != "message" {
		return &llm.Error{Kind: llm.ErrMalformed, Message: "the reply is no message"}
	}
	g.begin(in)
	g.finish = in.StopReason
	return nil
}

// begin takes in a whole reply or the frame of one.
func (g *gathered) begin(in message) {
	g.model = in.Model
	g.count(in.Usage)
	for _, block := range in.Content {
		if block.Type == "text" {
			g.text.WriteString(block.Text)
		}
	}
}

// count takes in what was used. Numbers are running totals.
func (g *gathered) count(raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	var in usage
	if json.Unmarshal(raw, &in) != nil {
		g.badUsage = true
		return
	}
	set(&g.input, in.Input)
	set(&g.usage.CacheWriteTokens, in.CacheWrite)
	set(&g.usage.CachedTokens, in.CacheRead)
	set(&g.usage.OutputTokens, in.Output)
	if in.Details != nil {
		set(&g.usage.ReasoningTokens, in.Details.Thinking)
	}
}

// set copies a number that is there.
func set(to, from *int64) {
	if from != nil {
		*to = *from
	}
}

// readStream reads a reply that comes in pieces. One that ends without a reason
// was cut off.
func (g *gathered) readStream(body io.Reader, give func(string)) error {
	err := httpclient.ReadEvents(body, func(_, data string) error {
		var in event
		if err := httpclient.Decode([]byte(data), &in); err != nil {
			return &llm.Error{Kind: llm.ErrMalformed, Err: err}
		}
		return g.add(in, data, give)
	})
	if err == nil && g.finish == "" {
		err = &llm.Error{Kind: llm.ErrCut, Message: "the stream ended without a reason"}
	}
	return httpclient.Partial(err, g.request, g.text.String())
}

// add takes in an event, and gives its text away. Kinds of events that are not
// known are skipped, as the format asks.
func (g *gathered) add(in event, data string, give func(string)) error {
	switch in.Type {
	case "error":
		return httpclient.Failure([]byte(data))
	case "message_start":
		g.begin(in.Message)
	case "content_block_delta":
		if in.Delta.Text != "" {
			g.text.WriteString(in.Delta.Text)
			give(in.Delta.Text)
		}
	case "message_delta":
		if in.Delta.StopReason != "" {
			g.finish = in.Delta.StopReason
		}
		g.count(in.Usage)
	case "message_stop":
		return httpclient.ErrDone
	}
	return nil
}

// finishes are the reasons to stop that other servers have too, by the names
// that this server has for them.
var finishes = map[string]string{
	"end_turn":                      llm.FinishStop,
	"stop_sequence":                 llm.FinishStop,
	"max_tokens":                    llm.FinishLength,
	"model_context_window_exceeded": llm.FinishLength,
	"refusal":                       llm.FinishRefusal,
}

// response returns the reply in this project's form.
func (g *gathered) response(outcome httpclient.Outcome) llm.Response {
	used := g.usage
	used.InputTokens = g.input + used.CachedTokens + used.CacheWriteTokens
	if g.badUsage || g.input < 0 {
		used = llm.Usage{}
	}
	out := llm.Response{Text: g.text.String(), Model: g.model, Finish: g.finish, Attempts: outcome.Attempts}
	if name, ok := finishes[g.finish]; ok {
		out.Finish = name
	}
	return httpclient.Finished(out, used, g.request, outcome)
}
