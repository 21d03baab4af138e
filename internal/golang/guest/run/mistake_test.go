package run

import (
	"strings"
	"testing"
)

func TestAnInputCalledAsInPythonIsExplained(t *testing.T) {
	for _, c := range []struct {
		kind, message string
		explained     bool
	}{
		{"CompileError", "snippet_1.go:1:2: undefined: context", true},
		{"CompileError", "1:2: undefined: context_1", true},
		{"CompileError", "undefined: contexts", false},
		{"CompileError", "undefined: Context_7", false},
		{"panic", "undefined: context", false},
	} {
		x := ExplainMistake(c.kind, c.message, c.message+"\n")
		if strings.Contains(x.Message, "Context_1, Context_2") != c.explained ||
			strings.Contains(x.Traceback, "the first input is Context") != c.explained {
			t.Errorf("%s: %+v", c.message, x)
		}
	}
}
