package anthropic

import (
	"errors"
	"strings"
	"testing"

	tokenusage "github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

func FuzzRead(f *testing.F) {
	f.Add(`{"type":"message","model":"m","content":[{"type":"text","text":"x"}],`+
		`"stop_reason":"end_turn","usage":{"input_tokens":1}}`, false)
	f.Add("data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n"+
		"data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"x\"}}\n\n"+
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"+
		"\"usage\":{\"output_tokens\":1}}\n\n"+
		"data: {\"type\":\"message_stop\"}\n\n", true)

	f.Add("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
		true)
	f.Fuzz(func(t *testing.T, body string, stream bool) {
		request := llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: "q"}}}
		var streamed strings.Builder
		var give func(string)
		if stream {
			give = func(piece string) {
				if piece == "" {
					streamed.Reset() // an empty piece means that the text starts again
				}
				streamed.WriteString(piece)
			}
		}

		r := &reader{}
		err := chat.Read(strings.NewReader(body), r, request, give)
		if failure := (*llm.Error)(nil); err != nil && !errors.As(err, &failure) {
			t.Errorf("got %v", err)
		} else if err != nil {
			if _, known := kind.Find(failure.Kind.Error()); !known {
				t.Errorf("got the unknown kind %v", failure.Kind)
			}
		}

		out := chat.NewResponse(r.Reply(), request, httpclient.Outcome{})
		if !tokenusage.IsPlausible(out.Usage) ||
			stream && streamed.String() != r.text.Text() {
			t.Errorf("got %+v, streamed %q", out, streamed.String())
		}
	})
}

func TestOnlyConversationsAreCached(t *testing.T) {
	question := llm.Message{Role: llm.RoleUser, Content: "q"}
	ask := chat.Request{Request: llm.Request{Messages: []llm.Message{question}}}
	if cacheOf(ask) != nil {
		t.Error("a single question is written to the cache")
	}
	answer := llm.Message{Role: llm.RoleAssistant, Content: "a"}
	ask.Messages = append(ask.Messages, answer, question)
	if cacheOf(ask) == nil {
		t.Error("a conversation is not")
	}
}

// cacheOf returns the cache control of a request.
func cacheOf(r chat.Request) *cacheControl {
	encoded, _ := format{}.Encode(r, false).(request)
	return encoded.CacheControl
}

// Each part has three bytes in the reply but takes a hundred in memory.
func TestAFloodOfPartsIsMalformed(t *testing.T) {
	r := &reader{}
	flood := `{"type":"message","content":[` + strings.Repeat("{},", 20_000) + `{}]}`
	err := r.ReadWhole(strings.NewReader(flood))
	if !errors.Is(err, kind.ErrMalformed) ||
		!strings.Contains(err.Error(), "more than 10000 items") {
		t.Errorf("got %v", err)
	}
}
