package run

import (
	"fmt"
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
		{"CompileError", "1:2: Context.Count undefined (type string has no field or method Count)", false},
	} {
		t.Run(c.kind, func(t *testing.T) {
			x := ExplainMistake(c.kind, c.message, c.message+"\n")
			if strings.Contains(x.Message, "Context_1, Context_2") != c.explained ||
				strings.Contains(x.Traceback, "the first input is Context") != c.explained {
				t.Errorf("%s: %+v", c.message, x)
			}
		})
	}
}

func TestAMethodOfALongInputIsExplained(t *testing.T) {
	for message, explained := range map[string]bool{
		"1:2: Context.Count undefined (type string has no field or method Count)":    true,
		"1:2: Context_12.Lines undefined (type string has no field or method Lines)": true,
		"snippet_1.go:2:13: undefined method: RFind":                                 true,
		"1:2: name.Count undefined (type string has no field or method Count)":       false,
		"snippet_1.go:2:13: undefined method: Finder":                                false,
	} {
		t.Run(fmt.Sprintf("%.60s", message), func(t *testing.T) {
			x := ExplainMistake(CompileError, message, message+"\n")
			if strings.Contains(x.Message, "(an input of at most 64 KiB is a string") != explained ||
				strings.Contains(x.Traceback, "strings.Count(Context") != explained {
				t.Errorf("%s: %+v", message, x)
			}
		})
	}
}

func TestAMissingImportIsNamed(t *testing.T) {
	for message, want := range map[string]string{
		"snippet_1.go:1:1: undefined: fmt": `(to use package fmt, add import "fmt")`,
		"1:13: undefined: http\n1:1: undefined: fmt\n2: undefined: fmt": `add import "fmt"; ` +
			`to use package http, add import "net/http")`,
		"2:3: undefined: json":           `add import "encoding/json")`,
		"2:3: undefined: fmtx":           "undefined: fmtx",
		"2:3: undefined: fmt.Printn":     "undefined: fmt.Printn",
		"2:3: fmt declared and not used": "not used",
	} {
		t.Run(fmt.Sprintf("%.60s", message), func(t *testing.T) {
			x := ExplainMistake(CompileError, message, message+"\n")
			if !strings.HasSuffix(x.Message, want) {
				t.Errorf("%s: %q", message, x.Message)
			}
		})
	}
	if x := ExplainMistake("panic", "undefined: fmt", ""); x.Message != "undefined: fmt" {
		t.Errorf("a panic: %q", x.Message)
	}
}
