package agenttrace_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/internal/agenttrace"
)

var updateForms = flag.Bool("update-forms", false, "write what the forms are read as anew")

// formFiles returns the samples of all forms. The name of a sample begins with its form.
func formFiles(tb testing.TB) map[string][]byte {
	tb.Helper()
	names, err := filepath.Glob("testdata/forms/*")
	if err != nil || len(names) < 25 {
		tb.Fatalf("there are %d samples: %v", len(names), err)
	}

	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		files[filepath.Base(name)] = data
	}

	return files
}

// readAs shows the result of reading a source: its format, the task, and a line for each step.
func readAs(p *agenttrace.Parsed) string {
	show := func(text *string) string {
		if text == nil {
			return "none"
		}
		return fmt.Sprintf("%q", *text)
	}
	_, system := p.Trace.Raw()
	lines := []string{
		"format: " + p.Format, fmt.Sprintf("traces: %d", p.Count),
		"question: " + show(&p.Traces.Question), "system: " + show(&system),
		"truth: " + show(p.Traces.GroundTruth), "feedback: " + show(p.Traces.Feedback),
	}
	for _, step := range p.Traces.Steps {
		lines = append(lines, "answer: "+show(&step.Answer))
	}

	for _, s := range p.Trace.Steps() {
		line := fmt.Sprintf("%s | %q | %q", s.Action, s.Thought, s.Observation)
		if s.Timestamp != nil {
			line += fmt.Sprintf(" | %.3f", *s.Timestamp)
		}
		if s.Metadata != nil {
			metadata, _ := json.Marshal(s.Metadata)
			line += " | " + string(metadata)
		}
		lines = append(lines, line)
	}

	return strings.Join(lines, "\n") + "\n"
}

// TestFormsAreRead reads a sample of each form, with the form detected and with it named, and
// compares the question, the steps and the answer with recorded ones.
func TestFormsAreRead(t *testing.T) {
	seen := map[string]bool{}
	for name, data := range formFiles(t) {
		t.Run(name, func(t *testing.T) {
			p, err := agenttrace.Parse(data, "auto")
			if err != nil {
				t.Fatal(err)
			}
			seen[p.Format] = true
			if !strings.HasPrefix(name, p.Format) {
				t.Errorf("it is taken for %s", p.Format)
			}
			if named, err := agenttrace.Parse(data, p.Format); err != nil || readAs(&named) != readAs(&p) {
				t.Errorf("it is read differently if the format is named: %v", err)
			}

			golden := filepath.Join("testdata", "golden", name+".txt")
			got := readAs(&p)
			if *updateForms {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("it is read as\n%s\nnot\n%s", got, want)
			}
		})
	}

	for _, name := range agenttrace.Formats()[1:] {
		if !seen[name] {
			t.Errorf("there is no sample of %s", name)
		}
	}
}

// TestFormsAreDocumented compares the table in the documentation with the forms.
func TestFormsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/traces.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, source := range agenttrace.Sources() {
		if row := "| `" + name + "` | " + source + " |"; !strings.Contains(string(text), row) {
			t.Errorf("docs/reference/traces.md has no row\n%s", row)
		}
	}
}

// TestSeveralTracesAreOne reads several traces from one source, which is a list or lines of whole
// traces.
func TestSeveralTracesAreOne(t *testing.T) {
	for _, c := range []struct{ text, format, want string }{
		{
			`[{"question": "A", "reasoning": "a"}, {"messages": [{"role": "user", "content": "B"}]}]`, "auto",
			"agent, conversation 2 \"A\\n\\nB\" 1 reasoning a 2 user_message B",
		},
		{
			`{"request": {"messages": [{"role": "user", "content": "B"}]}, "response": {"choices": []}}` + "\r\n",
			"completion", "completion 1 \"B\" user_message B",
		},
		{
			`[{"contents": [{"parts": [{"text": "A"}]}]}, {"contents": [{"parts": [{"text": "A"}]}]}]`, "gemini",
			"gemini 2 \"A\" 1 user_message A 2 user_message A",
		},
		{
			`{"question": "A", "feedback": "f", "reasoning": "a"}` + "\n" + `{"question": "B", "reaso`, "auto",
			"agent 1 \"A\" reasoning a line 2, the last one, is incomplete and was skipped",
		},
		{
			"{\n \"question\": \"A\", \"reasoning\": \"a\"\n}\n{\n \"reasoning\": \"b\"\n}\n", "auto",
			"agent 2 \"A\" 1 reasoning a 2 reasoning b",
		},
		{
			`{"custom_id": "1", "response": {"body": {"choices": [{"message": {"role": "assistant", ` +
				`"content": "A"}}]}}}`, "auto", "completion 1 \"\" agent_response A",
		},
	} {
		t.Run(fmt.Sprintf("%.60s", c.text), func(t *testing.T) {
			p, err := agenttrace.Parse([]byte(c.text), c.format)
			if err != nil {
				t.Errorf("%s: %v", c.text, err)
				return
			}
			got := fmt.Sprintf("%s %d %q", p.Format, p.Count, p.Traces.Question)
			for _, s := range p.Trace.Steps() {
				if name, ok := s.Metadata["trace"]; ok {
					got += fmt.Sprint(" ", name)
				}
				got += " " + s.Action + " " + s.Thought
			}
			if p.Note != "" {
				got += " " + p.Note
			}
			if got != c.want {
				t.Errorf("%s: %s", c.text, got)
			}
		})
	}
}
