package repl_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/llm"
)

func TestFenceCannotBeLeft(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n":         "```text\nplain\n```",
		"":                "```text\n\n```",
		"a\n```\nb":       "````text\na\n```\nb\n````",
		"``` `````` ````": "```````text\n``` `````` ````\n```````",
	} {
		if got := repl.Fence(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestPromptsAreFilled(t *testing.T) {
	prompts := repl.NewPrompts(fstest.MapFS{"prompts/ask.md": {Data: []byte("\nDo:\n{{fence .Task}}\n")}})
	if got, err := prompts.Fill("ask", map[string]string{"Task": "x"}); err != nil || got != "Do:\n```text\nx\n```" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := prompts.Fill("other", nil); err == nil || !strings.Contains(err.Error(), "cannot write the prompt other") {
		t.Errorf("got %v", err)
	}
}

// unknown is a registry that knows no model.
type unknown struct{}

func (unknown) Resolve(string) (llm.Model, error) { return llm.Model{}, errors.New("unknown") }
