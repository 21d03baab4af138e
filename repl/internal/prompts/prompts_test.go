package prompts_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rlmhq/rlm/repl/internal/prompts"
)

func TestFenceCannotBeLeft(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n":         "```text\nplain\n```",
		"":                "```text\n\n```",
		"a\n```\nb":       "````text\na\n```\nb\n````",
		"``` `````` ````": "```````text\n``` `````` ````\n```````",
	} {
		t.Run(text, func(t *testing.T) {
			if got := prompts.Fence(text); got != want {
				t.Errorf("%q is shown as %q, want %q", text, got, want)
			}
		})
	}
}

func TestPromptsAreFilled(t *testing.T) {
	prompts := prompts.New(
		fstest.MapFS{"prompts/ask.md": {Data: []byte("\nDo:\n{{fence .Task}}\n")}},
	)
	if got, err := prompts.Fill("ask", map[string]string{"Task": "x"}); err != nil ||
		got != "Do:\n```text\nx\n```" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := prompts.Fill("other", nil); err == nil ||
		!strings.Contains(err.Error(), "cannot write the prompt other") {
		t.Errorf("got %v", err)
	}
}
