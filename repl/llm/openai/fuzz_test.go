package openai

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

func FuzzRead(f *testing.F) {
	f.Add(`{"model":"m","choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`, false)
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", true)
	f.Add("data: {\"error\":{\"message\":\"m\"}}\n\n", true)
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
		if !out.Usage.Plausible() || stream && streamed.String() != g.text.String() {
			t.Errorf("got %+v, streamed %q", out, streamed.String())
		}
	})
}

func TestNamesOfSchemasAreMadeFit(t *testing.T) {
	for name, want := range map[string]string{"": "reply", "a b/ü": "a_b__", strings.Repeat("x", 99): strings.Repeat("x", 64)} {
		if got := schemaName(name); got != want {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

// TestAFloodOfPartsIsMalformed: each takes three bytes from a server, and a hundred here.
func TestAFloodOfPartsIsMalformed(t *testing.T) {
	g := &gathered{}
	if err := g.readWhole(strings.NewReader(`{"choices":[` + strings.Repeat("{},", 20_000) + `{}]}`)); !errors.Is(err, llm.ErrMalformed) || !strings.Contains(err.Error(), "more than 10000 items") {
		t.Errorf("got %v", err)
	}
}
