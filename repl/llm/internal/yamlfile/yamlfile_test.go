package yamlfile_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm/internal/yamlfile"
)

// Decoders have been seen that take minutes for a page of brackets, or bring the whole
// process down.
func TestHostileYAMLIsSoonRefused(t *testing.T) {
	units := []string{
		"[", "{a: ", "- ", "? ", "&a ", "a: ", "!!a ", "!", "a\n", "- [", "*a ", "\"", "'", "| ",
		"%", "\t", "---\n", "a: &a [*a, ",
	}
	for _, unit := range units {
		text := strings.Repeat(unit, 256<<10/len(unit))
		var into struct{ A []string }
		if err := yamlfile.Decode(strings.NewReader(text), 8<<20, &into); err == nil {
			t.Errorf("%q is accepted when repeated", unit)
		}
	}
}
