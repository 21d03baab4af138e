package yamlfile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/llm/internal/yamlfile"
)

// Some decoders take minutes for a page of brackets or crash the whole process.
func TestHostileYAMLIsSoonRefused(t *testing.T) {
	units := []string{
		"[", "{a: ", "- ", "? ", "&a ", "a: ", "!!a ", "!", "a\n", "- [", "*a ", "\"", "'", "| ",
		"%", "\t", "---\n", "a: &a [*a, ",
	}
	for _, unit := range units {
		t.Run(unit, func(t *testing.T) {
			text := strings.Repeat(unit, 256<<10/len(unit))
			var into struct{ A []string }
			if err := yamlfile.Decode(strings.NewReader(text), 8<<20, &into); err == nil {
				t.Errorf("%q is accepted when repeated", unit)
			}
		})
	}
}

// Mistakes are reported without the names of Go types.
func TestMistakesAreToldInTheWordsOfTheirAuthor(t *testing.T) {
	type rule struct {
		Reply *string        `yaml:"reply"`
		Turn  int            `yaml:"turn"`
		Delay time.Duration  `yaml:"delay"`
		More  map[string]any `yaml:"more"`
	}
	for text, want := range map[string]string{
		"rules:\n  - repyl: x":     `line 2: unknown key "repyl", did you mean "reply"?`,
		"rules:\n  - nothing: x":   `line 2: unknown key "nothing"`,
		"rules:\n  - reply: [1]":   "line 2: give a text, not a list",
		"rules:\n  - turn: two":    `line 2: give a whole number, not "two"`,
		"rules:\n  - delay: soon":  `line 2: give a time such as 500ms or 2s, not "soon"`,
		"rules: {reply: a}":        "line 1: give a list, not an object",
		"rules:\n  - more: [1]":    "line 2: give an object, not a list",
		"rules:\n  - reply: \"x\n": "line 2: found unexpected end of stream",
		"rules:\n  - turn: a\n    delay: b": `line 2: give a whole number, not "a"; ` +
			`line 3: give a time such as 500ms or 2s, not "b"`,
	} {
		t.Run(text, func(t *testing.T) {
			var into struct {
				Rules []rule `yaml:"rules"`
			}
			err := yamlfile.Decode(strings.NewReader(text), 1<<10, &into)
			if err == nil || err.Error() != want {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
		})
	}
}
