package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tokenusage "github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

func FuzzRead(f *testing.F) {
	f.Add(`{"model":"m","choices":[{"message":{"content":"x"},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":1}}`, false)
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"+
		"data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", true)
	f.Add(`{"choices":[{"message":{"content":[{"type":"text","text":"x"},"y",{"type":"thinking"}]}}]}`, false)
	f.Add("data: {\"error\":{\"message\":\"m\"}}\n\n", true)
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
		if !tokenusage.IsPlausible(out.Usage) || stream && streamed.String() != r.text.Text() {
			t.Errorf("got %+v, streamed %q", out, streamed.String())
		}
	})
}

func TestNamesOfSchemasAreMadeFit(t *testing.T) {
	for name, want := range map[string]string{
		"": "reply", "a b/ü": "a_b__",
		strings.Repeat("x", 99): strings.Repeat("x", 64),
	} {
		t.Run(fmt.Sprintf("%.60s", name), func(t *testing.T) {
			if got := cleanSchemaName(name); got != want {
				t.Errorf("%q: got %q", name, got)
			}
		})
	}
}

func TestContentInPartsIsRead(t *testing.T) {
	for message, want := range map[string]string{
		`"red"`:                          "red",
		`null`:                           "",
		`[]`:                             "",
		`[{"type":"text","text":"red"}]`: "red",
		`[{"type":"thinking","thinking":[{"type":"text","text":"green?"}]},{"type":"text","text":"red"}]`: "red",
		`[{"type":"output_text","text":"re"},"d"]`:                                                        "red",
		`[{"text":"red"},{"type":"image_url","image_url":{"url":"x"}}]`:                                   "red",
	} {
		t.Run(fmt.Sprintf("%.60s", message), func(t *testing.T) {
			whole := &reader{}
			body := `{"choices":[{"message":{"content":` + message + `},"finish_reason":"stop"}]}`
			if err := whole.ReadWhole(strings.NewReader(body)); err != nil || whole.Reply().Text != want {
				t.Errorf("%s: got %q, %v", message, whole.Reply().Text, err)
			}
			streamed := &reader{}
			event := `{"choices":[{"delta":{"content":` + message + `}}]}`
			if err := streamed.ReadEvent([]byte(event)); err != nil || streamed.Reply().Text != want {
				t.Errorf("%s: streamed %q, %v", message, streamed.Reply().Text, err)
			}
		})
	}

	for _, message := range []string{
		`7`, `{"text":"red"}`, `[7]`, `[["red"]]`, `[{"text":7}]`,
		"[" + strings.Repeat("{},", 20_000) + "{}]",
	} {
		t.Run(fmt.Sprintf("%.60s", message), func(t *testing.T) {
			err := (&reader{}).ReadWhole(strings.NewReader(`{"choices":[{"message":{"content":` + message + `}}]}`))
			if !errors.Is(err, kind.ErrMalformed) {
				t.Errorf("%.40s: got %v", message, err)
			}
		})
	}
}

// Each part has three bytes in the reply but takes a hundred in memory.
func TestAFloodOfPartsIsMalformed(t *testing.T) {
	r := &reader{}
	flood := `{"choices":[` + strings.Repeat("{},", 20_000) + `{}]}`
	err := r.ReadWhole(strings.NewReader(flood))
	if !errors.Is(err, kind.ErrMalformed) ||
		!strings.Contains(err.Error(), "more than 10000 items") {
		t.Errorf("got %v", err)
	}
}
