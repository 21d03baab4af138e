package reflect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/reflect"
)

// BenchmarkReflection measures a whole reflection of five iterations with a scripted model, that
// is, the loop and its sandbox.
func BenchmarkReflection(b *testing.B) {
	once := func() {
		m := &models{script: []string{
			code("print(trace.summary())"), code("print(trace.get_errors())"),
			code("notes = [ask_llm('q', str(s)) for s in trace]"), code("print(notes)"), code(good),
		}}
		outcome, err := reflect.Run(b.Context(), config(m), subject())
		if err != nil || outcome.Iterations != 5 {
			b.Fatal(outcome, err)
		}
	}
	once() // compiles the sandbox
	for b.Loop() {
		once()
	}
}

// BenchmarkParseOutput measures reading an analysis of a common size.
func BenchmarkParseOutput(b *testing.B) {
	value, err := json.Marshal(map[string]any{
		"reasoning": strings.Repeat("word ", 1_000),
		"extracted_learnings": []map[string]any{
			{"learning": "l", "atomicity_score": 0.5}, {"learning": "m"},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := reflect.ParseAnalysis(value); err != nil {
			b.Fatal(err)
		}
	}
}
