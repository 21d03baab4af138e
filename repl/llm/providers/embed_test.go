package providers_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// embedding requests the vectors of three strings.
var embedding = llm.Request{Embed: true, MaxTokens: 7, Messages: []llm.Message{
	{Role: llm.RoleUser, Content: "a"},
	{Role: llm.RoleUser, Content: "b"},
	{Role: llm.RoleUser, Content: "c"},
}}

// vectors checks the request and answers with a vector for each string.
func vectors(r llm.Request) (llm.Response, error) {
	if !r.Embed || len(r.Messages) != 3 || r.Messages[2].Content != "c" || r.Model != "any" {
		return llm.Response{}, fmt.Errorf("got %+v", r)
	}
	return llm.Response{Text: "[[1,0.5],[0,-2],[3,0]]", Usage: llm.Usage{InputTokens: 12}}, nil
}

func TestVectorsAreAskedFor(t *testing.T) {
	for _, format := range []string{"openai", "azure", "ollama", "vllm"} {
		t.Run(format, func(t *testing.T) {
			_, model := setUp(t, format, quick, vectors)
			r := embedding
			r.Model = model.ID
			got, err := model.Provider.Complete(t.Context(), r, nil)
			if err != nil || got.Text != "[[1,0.5],[0,-2],[3,0]]" || got.Usage.InputTokens != 12 ||
				got.Usage.OutputTokens != 0 || got.Usage.Estimated {
				t.Errorf("%s: %+v, %v", format, got, err)
			}
		})
	}
}

func TestAProviderWithoutVectorsSaysSo(t *testing.T) {
	_, model := setUp(t, "anthropic", quick, vectors)
	_, err := model.Provider.Complete(t.Context(), embedding, nil)
	if !errors.Is(err, kind.ErrBadRequest) || !strings.Contains(err.Error(), "has no embeddings") {
		t.Error(err)
	}
}

func TestVectorsThatMakeNoSenseAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"[[1,2],[3,4]]":     "it has 2 vectors for 3 texts",
		"[[1,2],[3,4],[5]]": "vector 1 has 2 numbers, the first one has 1",
		"[[],[],[]]":        "vector 0 has 0 numbers",
		"[[1],[2],[1e99]]":  "cannot unmarshal number 1e99",
		`[[1],[2],["x"]]`:   "cannot unmarshal string",
		"{}":                "it has 0 vectors for 3 texts",
		`{"data": [{"index": 7, "embedding": [1]}, {"index": 1, "embedding": [1]}, ` +
			`{"index": 2, "embedding": [1]}]}`: "vector 0 has the index 7",
		`{"data": [{"index": 1, "embedding": [1]}, {"index": 1, "embedding": [1]}, ` +
			`{"index": 2, "embedding": [1]}]}`: "vector 1 has the index 1",
		"[[" + strings.Repeat("1,", 20_000) + "1],[1],[1]]": "more than 10000 items",
		"<html>": "malformed",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			config := quick
			config.Attempts = 1
			_, model := setUp(t, "openai", config, func(llm.Request) (llm.Response, error) {
				return llm.Response{Text: text}, nil
			})
			r := embedding
			r.Model = model.ID
			got, err := model.Provider.Complete(t.Context(), r, nil)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%.60s: %+v, %v, want %q", text, got, err, says)
			}
		})
	}
}

func TestVectorsAreRecordedAndReplayed(t *testing.T) {
	server := llmtest.Start(vectors)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "record.jsonl")
	for _, o := range []providers.Options{{Env: server.Env, Record: file}, {Replay: file}} {
		registry, err := providers.New(o)
		if err != nil {
			t.Fatal(err)
		}
		model, err := registry.Resolve("openai/any")
		if err != nil {
			t.Fatal(err)
		}
		r := embedding
		r.Model = model.ID
		got, err := model.Provider.Complete(t.Context(), r, nil)
		if err != nil || got.Text != "[[1,0.5],[0,-2],[3,0]]" || got.Usage.InputTokens != 12 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := len(server.Seen()); n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
}
