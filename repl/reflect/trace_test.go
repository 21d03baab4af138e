package reflect_test

import (
	"encoding/json"
	"fmt"
	values "reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/reflect"
)

func TestTraceStepTable(t *testing.T) {
	at := 12.5
	s := reflect.TraceStep{
		Index: 3, Action: "tool_call:a_tool_with_a_name_that_is_long", Thought: strings.Repeat("ä", 250), Observation: "found",
		Timestamp: &at, Metadata: map[string]any{"k": 1},
	}
	for _, c := range []struct{ name, got, want string }{
		{"content", s.Content(), strings.Repeat("ä", 250) + "\nfound"},
		{"content of a thought", reflect.TraceStep{Thought: "t"}.Content(), "t"},
		{"content of an observation", reflect.TraceStep{Observation: "o"}.Content(), "o"},
		{"content of nothing", reflect.TraceStep{}.Content(), ""},
		{"preview", s.Preview(reflect.DefaultPreview), s.Content()},
		{"preview(10)", s.Preview(10), strings.Repeat("ä", 10) + "... (246 more chars)"},
		{"preview(0)", s.Preview(0), "... (256 more chars)"},
		{"preview(-1)", s.Preview(-1), "... (256 more chars)"},
		{"repr", s.Repr(), "TraceStep(3: tool_call:a_tool_with_a_name_t...)"},
		{"repr of the design", reflect.TraceStep{Action: "reasoning"}.Repr(), "TraceStep(0: reasoning...)"},
		{"str", s.String(), "Step 3 [tool_call:a_tool_with_a_name_that_is_long]\n  Thought: " + strings.Repeat("ä", 200) + "... (50 more chars)\n  Observation: found"},
		{"str of nothing", reflect.TraceStep{}.String(), "Step 0 []"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, not %q", c.name, c.got, c.want)
		}
	}
	data, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(data), `"timestamp":12.5,"metadata":{"k":1}`) {
		t.Errorf("%s %v", data, err)
	}
}

// sample is a trace with steps of several kinds.
func sample() *reflect.TraceContext {
	return reflect.NewTraceContext([]reflect.TraceStep{
		{Action: reflect.ActionUser, Thought: "Find the Straße"},
		{Action: "tool_call:search", Thought: `{"q": "STRASSE"}`, Observation: "[ERROR] Timeout"},
		{Action: "tool_call:fetch", Thought: "{}", Observation: "All failed."},
		{Index: 99, Action: reflect.ActionAgent, Thought: "I give up: 42"},
	}, "one Error, two errors; 42 and 4711")
}

func TestTraceContextMethods(t *testing.T) {
	trace := sample()
	indices := func(steps []reflect.TraceStep) []int {
		found := []int{}
		for _, s := range steps {
			found = append(found, s.Index)
		}
		return found
	}
	regex := func(pattern string) any {
		found, err := trace.FindStepsRegex(pattern)
		if err != nil {
			return err.Error()
		}
		return indices(found)
	}
	result := func(v any, err error) any {
		if err != nil {
			return err.Error()
		}
		return v
	}
	step := func(i int) any {
		s, ok := trace.Step(i)
		return fmt.Sprint(s.Action, ok)
	}
	all := []int{}
	for i, s := range trace.All() {
		if s.Index != i {
			t.Errorf("step %d has the index %d", i, s.Index)
		}
		all = append(all, i)
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"steps", indices(trace.Steps()), []int{0, 1, 2, 3}},
		{"raw_reasoning", trace.RawReasoning(), "one Error, two errors; 42 and 4711"},
		{"get_step", step(1), "tool_call:searchtrue"},
		{"get_step out of bounds", step(4), "false"},
		{"get_step before the first", step(-1), "false"},
		{"find_steps", indices(trace.FindSteps("strasse", false)), []int{0, 1}},
		{"find_steps case_sensitive", indices(trace.FindSteps("STRASSE", true)), []int{1}},
		{"find_steps in actions", indices(trace.FindSteps("tool_call:F", false)), []int{2}},
		{"find_steps takes no pattern", indices(trace.FindSteps(".*", false)), []int{}},
		{"find_steps_regex", regex(`^\{.*\}$`), []int{1, 2}},
		{"find_steps_regex flags", regex(`(?i)TIME\w+`), []int{1}},
		{"find_steps_regex invalid", regex(`(`), "cannot search the trace: error parsing regexp: missing closing ): `(`"},
		{"get_errors", indices(trace.Errors()), []int{1, 2}},
		{"get_actions", indices(trace.Actions("tool_call")), []int{1, 2}},
		{"get_actions of one tool", indices(trace.Actions("Tool_Call:Search")), []int{1}},
		{"summary", trace.Summary(), "Trace of 4 steps, from user_message to agent_response; 2 tell of errors"},
		{"summary of nothing", reflect.NewTraceContext(nil, "").Summary(), "Empty trace (no steps)"},
		{"search_raw", result(trace.SearchRaw(`(time|give)`)), []int{1, 3}},
		{"search_raw_text", result(trace.SearchRawText(`errors?|\d{4}`)), []string{"Error", "errors", "4711"}},
		{"search_raw_text of nothing", result(trace.SearchRawText(`x*`)), []string{}},
		{"len", trace.Len(), 4},
		{"iter", all, []int{0, 1, 2, 3}},
		{"to_markdown", trace.Markdown(), `## Trace

**User:** Find the Straße

**Agent** calls search({"q": "STRASSE"})
**Tool:** [ERROR] Timeout

**Agent** calls fetch({})
**Tool:** All failed.

**Agent:** I give up: 42`},
	} {
		if !values.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %#v, not %#v", c.name, c.got, c.want)
		}
	}
	trace.Steps()[0].Thought = "changed"
	if s, _ := trace.Step(0); s.Thought != "Find the Straße" {
		t.Error("a trace was changed through what it returned")
	}
}

// brief is a trace with a line for each step.
func brief(trace *reflect.TraceContext) []string {
	lines := []string{}
	for _, s := range trace.All() {
		line := s.Action + "|" + s.Thought + "|" + s.Observation
		if s.Timestamp != nil {
			line += fmt.Sprint("|", *s.Timestamp)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestFactoryMethods(t *testing.T) {
	made := func(trace *reflect.TraceContext, err error) *reflect.TraceContext {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return trace
	}
	for _, c := range []struct {
		name string
		got  *reflect.TraceContext
		want []string
	}{
		{
			"from_agent_output", reflect.FromAgentOutput(reflect.AgentOutput{Reasoning: "[assistant] a\n[USER] b\n  [assistant]\n", FinalAnswer: "c"}),
			[]string{"agent_response|a|", "user_message|b|Answer: c"},
		},
		{"from_agent_output without markers", reflect.FromAgentOutput(reflect.AgentOutput{Reasoning: "1. say [user] a"}), []string{"reasoning|1. say [user] a|"}},
		{
			"from_reasoning_string", reflect.FromReasoningString("Plan:\n1. pi is 3.14\n on\n2) b\nStep 3: c\n1999. d\n"),
			[]string{"reasoning|Plan:|", "reasoning|pi is 3.14\n on|", "reasoning|b|", "reasoning|c\n1999. d|"},
		},
		{"from_reasoning_string without numbers", reflect.FromReasoningString(" all of it\n"), []string{"reasoning|all of it|"}},
		{
			"from_browser_use", made(reflect.FromBrowserUse([]byte(`{"history": [{"model_output": {"current_state": {"memory": "m"}, "action": [{"go": {"url": "u"}}, {"done": null}]},
				"result": [{"error": "stale"}], "state": {"url": "u", "screenshot": "AAAA"}, "metadata": {"step_start_time": 2.5}}]}`))),
			[]string{"tool_call:go|Memory: m\nAction: go({\"url\": \"u\"})|[ERROR] stale|2.5"},
		},
		{
			"from_langchain", made(reflect.FromLangChain([]byte(`[[{"tool": "search", "tool_input": {"b": 1, "a": 2.0}, "log": ""}, ["x"]]]`))),
			[]string{`tool_call:search|{"a": 2.0, "b": 1}|["x"]`},
		},
		{
			"from_conversation_history", made(reflect.FromConversationHistory([]byte(`[{"role": "user", "content": "`+strings.Repeat("x", 1005)+`"}]`), 0)),
			[]string{"user_message|" + strings.Repeat("x", 1000) + "... (5 more chars)|"},
		},
		{
			"from_conversation_history max_text_len", made(reflect.FromConversationHistory([]byte(`[{"role": "assistant", "content": [{"type": "text", "text": "ab"}, {"type": "tool_use", "id": "1", "name": "t", "input": {}}]}]`), 1)),
			[]string{"agent_response|a... (1 more chars)|", "tool_call:t|{... (1 more chars)|"},
		},
		{
			"from_tau_simulation", made(reflect.FromTauSimulation([]byte(`[{"role": "assistant", "tool_calls": [{"id": "", "name": "t", "arguments": {"x": 1}}]},
				{"role": "tool", "id": "", "content": "no", "error": true}, {"role": "tool", "id": "", "content": "alone"}]`), "Be kind.")),
			[]string{`tool_call:t|{"x": 1}|[ERROR] no`, "tool_result||alone"},
		},
		{"combine", reflect.Combine(sample(), reflect.FromReasoningString("end"), reflect.NewTraceContext(nil, "")), append(brief(sample()), "reasoning|end|")},
		{"combine of nothing", reflect.Combine(), []string{}},
	} {
		if got := brief(c.got); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q\nnot\n%q", c.name, got, c.want)
		}
		for i, s := range c.got.All() {
			if s.Index != i {
				t.Errorf("%s: step %d has the index %d", c.name, i, s.Index)
			}
		}
	}
	both := reflect.Combine(made(reflect.FromTauSimulation([]byte(`[]`), "Be kind.")), sample(), sample())
	if both.SystemPrompt() != "Be kind." || strings.Count(both.RawReasoning(), "\n\n---\n\n") != 1 || !strings.HasPrefix(both.Markdown(), "## System prompt\n\nBe kind.") {
		t.Errorf("combined: %q %q", both.SystemPrompt(), both.RawReasoning())
	}
}

func BenchmarkFindSteps(b *testing.B) {
	var steps []reflect.TraceStep
	for i := range 1000 {
		steps = append(steps, reflect.TraceStep{Action: "tool_call:search", Thought: fmt.Sprint("Query ", i), Observation: strings.Repeat("Some text. ", 50)})
	}
	trace := reflect.NewTraceContext(steps, "")
	b.SetBytes(1000 * 570)
	for b.Loop() {
		trace.FindSteps("query 77", false)
	}
}
