package anthropic

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

func FuzzRead(f *testing.F) {
	f.Add(`{"type":"message","model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":1}}`, false)
	f.Add("data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n"+
		"data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"x\"}}\n\n"+
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n"+
		"data: {\"type\":\"message_stop\"}\n\n", true)
	f.Add("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", true)
	f.Fuzz(func(t *testing.T, body string, stream bool) {
		g := &gathered{request: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: "q"}}}}
		var streamed strings.Builder
		err := g.readWhole(strings.NewReader(body))
		if stream {
			g = &gathered{request: g.request}
			err = g.readStream(strings.NewReader(body), func(piece string) { streamed.WriteString(piece) })
		}
		if failure := (*llm.Error)(nil); err != nil && (!errors.As(err, &failure) || !failure.Kind.Known()) {
			t.Errorf("got %v", err)
		}
		out := g.response(httpclient.Outcome{})
		if !out.Usage.Plausible() || !strings.HasSuffix(g.text.String(), streamed.String()) && stream {
			t.Errorf("got %+v, streamed %q", out, streamed.String())
		}
	})
}

func TestOnlyConversationsAreCached(t *testing.T) {
	ask := httpclient.Ask{Request: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: "q"}}}}
	if encode(ask, false).CacheControl != nil {
		t.Error("a single question is written to the cache")
	}
	ask.Messages = append(ask.Messages, llm.Message{Role: llm.RoleAssistant, Content: "a"}, ask.Messages[0])
	if encode(ask, false).CacheControl == nil {
		t.Error("a conversation is not")
	}
}

// TestAFloodOfPartsIsMalformed: each takes three bytes from a server, and a hundred here.
func TestAFloodOfPartsIsMalformed(t *testing.T) {
	g := &gathered{}
	if err := g.readWhole(strings.NewReader(`{"type":"message","content":[` + strings.Repeat("{},", 20_000) + `{}]}`)); !errors.Is(err, llm.ErrMalformed) || !strings.Contains(err.Error(), "more than 10000 items") {
		t.Errorf("got %v", err)
	}
}
