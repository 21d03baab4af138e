package agenttrace_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/looptest"
	"github.com/rlmhq/rlm/repl/internal/agenttrace"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/standard"
)

// sample is a trace with steps of several kinds.
func sample() *agenttrace.Trace {
	return agenttrace.New([]agenttrace.Step{
		{Action: "user_message", Thought: "Find the Straße"},
		{Action: "tool_call:search", Thought: `{"q": "STRASSE"}`, Observation: "[ERROR] Timeout"},
		{Action: "tool_call:fetch", Thought: "{}", Observation: "All failed."},
		{Index: 99, Action: "agent_response", Thought: "I give up: 42"},
	}, "one Error, two errors; 42 and 4711")
}

// TestTraceMethods checks the methods of the classes that snippets have.
//
// Source 000, repl/internal/agenttrace/trace.go: TraceContext: steps, raw_reasoning, get_step,
// find_steps, find_steps_regex, get_errors, get_actions, summary, to_markdown, search_raw,
// search_raw_text, __len__, __iter__, __getitem__.
//
// Source 000, repl/internal/agenttrace/trace.go: TraceStep: content, preview(max_len=300),
// __repr__ and __str__.
func TestTraceMethods(t *testing.T) {
	s := traceSession(t, shared, router.Policy{}, "wasm")
	if err := agenttrace.Bind(t.Context(), s, sample()); err != nil {
		t.Fatal(err)
	}
	final(t, s, methods+"FINAL(1)")
	for _, c := range []struct{ source, want string }{
		{"step.content", `"` + strings.Repeat("ä", 250) + `\nfound"`},
		{"TraceStep(0, '', 't', '').content", `"t"`},
		{"TraceStep(0, '', '', 'o').content", `"o"`},
		{"TraceStep(0, '', '', '').content", `""`},
		{"step.preview() == step.content", `true`},
		{"step.preview(10)", `"` + strings.Repeat("ä", 10) + `... (246 more chars)"`},
		{"step.preview(0)", `"... (256 more chars)"`},
		{"step.preview(-1)", `"... (256 more chars)"`},
		{"repr(step)", `"TraceStep(3: tool_call:a_tool_with_a_name_t...)"`},
		{"repr(TraceStep(0, 'reasoning', '', ''))", `"TraceStep(0: reasoning...)"`},
		{"str(step)", `"Step 3 [tool_call:a_tool_with_a_name_that_is_long]\n  Thought: ` + strings.Repeat("ä", 200) +
			`... (50 more chars)\n  Observation: found"`},
		{"str(TraceStep(0, '', '', ''))", `"Step 0 []"`},
		{"at(trace.steps)", `[0,1,2,3]`},
		{"trace.raw_reasoning", `"one Error, two errors; 42 and 4711"`},
		{"trace.get_step(1).action", `"tool_call:search"`},
		{"[trace.get_step(4), trace.get_step(-1)]", `[null,null]`},
		{"at(trace.find_steps('strasse'))", `[0,1]`},
		{"at(trace.find_steps('STRASSE', case_sensitive=True))", `[1]`},
		{"at(trace.find_steps('tool_call:F'))", `[2]`},
		{"at(trace.find_steps('.*'))", `[]`},
		{`at(trace.find_steps_regex(r'^\{.*\}$'))`, `[1,2]`},
		{`at(trace.find_steps_regex(r'TIME\w+', re.I))`, `[1]`},
		{"at(trace.get_errors())", `[1,2]`},
		{"at(trace.get_actions('tool_call'))", `[1,2]`},
		{"at(trace.get_actions('Tool_Call:Search'))", `[1]`},
		{"trace.summary()", `"Trace of 4 steps, from user_message to agent_response; 2 tell of errors"`},
		{"TraceContext([]).summary()", `"Empty trace (no steps)"`},
		{"trace.search_raw('(time|give)')", `[1,3]`},
		{`trace.search_raw_text(r'errors?|\d{4}')`, `["Error","errors","4711"]`},
		{"trace.search_raw_text('x*')", `[]`},
		{"[len(trace), at(trace)]", `[4,[0,1,2,3]]`},
		{"trace.to_markdown()", `"## Trace\n\n**User:** Find the Straße\n\n` +
			`**Agent** calls search({\"q\": \"STRASSE\"})\n**Tool:** [ERROR] Timeout\n\n` +
			`**Agent** calls fetch({})\n**Tool:** All failed.\n\n**Agent:** I give up: 42"`},
	} {
		t.Run(c.source, func(t *testing.T) {
			got, err := json.Marshal(final(t, s, "FINAL("+c.source+")"))
			if err != nil || string(got) != c.want {
				t.Errorf("%s: %s, not %s", c.source, got, c.want)
			}
		})
	}
}

// methods defines the names that the table of TestTraceMethods uses.
const methods = `
import re
step = TraceStep(3, "tool_call:a_tool_with_a_name_that_is_long", "ä" * 250, "found")
def at(steps):
    return [s.index for s in steps]
`

// agentJSON is an agent's output as JSON.
func agentJSON(reasoning, answer string) []byte {
	data, err := json.Marshal(map[string]string{"reasoning": reasoning, "final_answer": answer})
	if err != nil {
		panic(err)
	}

	return data
}

// brief returns a trace with a line for each step.
func brief(trace *agenttrace.Trace) []string {
	lines := []string{}
	for _, s := range trace.Steps() {
		line := s.Action + "|" + s.Thought + "|" + s.Observation
		if s.Timestamp != nil {
			line += fmt.Sprint("|", *s.Timestamp)
		}
		lines = append(lines, line)
	}
	return lines
}

var shared *rlm.Engine

func TestMain(m *testing.M) {
	looptest.Main(m, &shared, rlm.Options{
		Tiers: standard.Tiers(standard.Options{Python: os.Getenv("RLM_LOCAL_PYTHON")}),
	})
}

// TestFactoryMethods checks the traces that the factories make.
//
// Source 000, repl/internal/agenttrace/factories.go: Factory methods: from_agent_output,
// from_reasoning_string, from_browser_use, from_langchain, from_conversation_history,
// from_tau_simulation, combine.
func TestFactoryMethods(t *testing.T) {
	made := func(trace *agenttrace.Trace, err error) *agenttrace.Trace {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return trace
	}
	reasoned := func(text string) *agenttrace.Trace {
		t.Helper()
		source, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}

		return made(agenttrace.Make("reasoning", source, 0, ""))
	}
	for _, c := range []struct {
		name string
		got  *agenttrace.Trace
		want []string
	}{
		{
			"from_agent_output",
			made(agenttrace.Make(
				"agent", agentJSON("[assistant] a\n[USER] b\n  [assistant]\n", "c"), 0, "",
			)),
			[]string{"agent_response|a|", "user_message|b|Answer: c"},
		},
		{
			"from_agent_output without markers",
			made(agenttrace.Make("agent", agentJSON("1. say [user] a", ""), 0, "")),
			[]string{"reasoning|1. say [user] a|"},
		},
		{
			"from_reasoning_string", reasoned("Plan:\n1. pi is 3.14\n on\n2) b\nStep 3: c\n1999. d\n"),
			[]string{"reasoning|Plan:|", "reasoning|pi is 3.14\n on|", "reasoning|b|", "reasoning|c\n1999. d|"},
		},
		{"from_reasoning_string without numbers", reasoned(" all of it\n"), []string{"reasoning|all of it|"}},
		{
			"from_browser_use", made(agenttrace.Make("browser-use", []byte(`{"history": `+
				`[{"model_output": {"current_state": {"memory": "m"}, "action": [{"go": {"url": "u"}}, {"done": null}]},
				"result": [{"error": "stale"}], "state": {"url": "u", "screenshot": "AAAA"}, "metadata": `+
				`{"step_start_time": 2.5}}]}`), 0, "")),
			[]string{"tool_call:go|Memory: m\nAction: go({\"url\": \"u\"})|[ERROR] stale|2.5"},
		},
		{
			"from_langchain", made(agenttrace.Make("langchain", []byte(`[[{"tool": "search", `+
				`"tool_input": {"b": 1, "a": 2.0}, "log": ""}, ["x"]]]`), 0, "")),
			[]string{`tool_call:search|{"a": 2.0, "b": 1}|["x"]`},
		},
		{
			"from_conversation_history",
			made(agenttrace.Make(
				"conversation",
				[]byte(`[{"role": "user", "content": "`+strings.Repeat("x", 1005)+`"}]`), 0, "",
			)),
			[]string{"user_message|" + strings.Repeat("x", 1000) + "... (5 more chars)|"},
		},
		{
			"from_conversation_history max_text_len",
			made(agenttrace.Make(
				"conversation",
				[]byte(`[{"role": "assistant", "content": [{"type": "text", "text": "ab"}, `+
					`{"type": "tool_use", "id": "1", "name": "t", "input": {}}]}]`), 1, "",
			)),
			[]string{"agent_response|a... (1 more chars)|", "tool_call:t|{... (1 more chars)|"},
		},
		{
			"from_tau_simulation", made(agenttrace.Make("tau", []byte(`[{"role": "assistant", `+
				`"tool_calls": [{"id": "", "name": "t", "arguments": {"x": 1}}]},
				{"role": "tool", "id": "", "content": "no", "error": true}, {"role": "tool", "id": "", `+
				`"content": "alone"}]`), 0, "Be kind.")),
			[]string{`tool_call:t|{"x": 1}|[ERROR] no`, "tool_result||alone"},
		},
		{
			"combine", agenttrace.Combine(sample(), reasoned("end"), agenttrace.New(nil, "")),
			append(brief(sample()), "reasoning|end|"),
		},
		{"combine of nothing", agenttrace.Combine(), []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := brief(c.got); !slices.Equal(got, c.want) {
				t.Errorf("%s:\n%q\nnot\n%q", c.name, got, c.want)
			}
			for i, s := range c.got.Steps() {
				if s.Index != i {
					t.Errorf("%s: step %d has the index %d", c.name, i, s.Index)
				}
			}
		})
	}
	both := agenttrace.Combine(
		made(agenttrace.Make("tau", []byte(`[]`), 0, "Be kind.")), sample(), sample(),
	)
	raw, system := both.Raw()
	if system != "Be kind." || strings.Count(raw, "\n\n---\n\n") != 1 ||
		!strings.HasPrefix(both.Markdown(), "## System prompt\n\nBe kind.") {
		t.Errorf("combined: %q %q", system, raw)
	}
}
