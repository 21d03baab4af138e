package agenttrace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	values "reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/internal/agenttrace"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// alike is a source, the factory that makes a trace from it, and the methods to call on the trace.
// Make in Go and the class in Python must make the same trace.
type alike struct {
	Factory string   `json:"factory"`
	Source  any      `json:"source"`
	Limit   int      `json:"limit"`
	System  string   `json:"system"`
	Probes  []string `json:"probes"`
	// Objects makes Python turn the source into objects like those of the libraries.
	Objects bool `json:"objects"`
}

// loaded returns the steps that the host's loader reads from the source and their origin, in the
// form of testdata/trace_answers.py.
func (c alike) loaded(t *testing.T) any {
	t.Helper()
	trace, err := c.make(t)
	if err != nil {
		return plain(t, map[string]any{"error": err.Error()})
	}

	steps := []any{}
	for _, s := range trace.Steps() {
		steps = append(
			steps, []any{s.Index, s.Action, s.Thought, s.Observation, s.Timestamp, s.Metadata},
		)
	}
	raw, system := trace.Raw()

	return plain(t, map[string]any{
		"steps": steps, "raw": raw, "system": system, "len": trace.Len(),
		"markdown": trace.Markdown(),
	})
}

// make makes the trace in Go.
func (c alike) make(t *testing.T) (*agenttrace.Trace, error) {
	t.Helper()
	data, err := json.Marshal(c.Source)
	if err != nil {
		t.Fatal(err)
	}

	return agenttrace.Make(c.Factory, data, c.Limit, c.System)
}

// plain returns a value after a round trip through JSON.
func plain(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// alikeCases returns the files of testdata/traces, with the factories that read them, and some
// randomly generated sources, most of them with a mistake.
func alikeCases(t *testing.T, byChance int) []alike {
	t.Helper()
	files, err := filepath.Glob("testdata/traces/*")
	if err != nil || len(files) < 10 {
		t.Fatal("the traces are not there", err)
	}
	probes := []string{
		"error", "CITY", "köln", "straße", "tool_call", "tool_call:search", "user", "[", "Agent",
		"é", "ς", "Kelvin", "1", "t",
	}
	var cases []alike
	add := func(factory string, source any) {
		for _, limit := range []int{0, 12} {
			cases = append(cases, alike{
				Factory: factory, Source: source, Limit: limit, System: "Policy: be kind.",
				Probes: probes,
			})
		}
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".txt") {
			add("reasoning", string(data))
			add("agent", string(data))
			add("combine", []any{string(data), "alone", string(data)})
			continue
		}
		source := decoded(t, data)
		for _, factory := range []string{
			"agent", "browser-use", "langchain", "conversation", "tau",
		} {
			add(factory, source)
			if object, ok := source.(map[string]any); ok && object["messages"] != nil {
				add(factory, object["messages"])
			}
		}
	}
	for _, factory := range []string{"agent", "browser-use", "langchain", "tau"} {
		data, err := os.ReadFile(filepath.Join("testdata", "traces", factory+".json"))
		if err != nil {
			t.Fatal(err)
		}
		source := decoded(t, data)
		if factory == "tau" {
			source = source.(map[string]any)["messages"]
		}
		add(factory, source)
		cases[len(cases)-1].Objects = true
	}
	if byChance > 0 {
		for _, messages := range formMessages(t) {
			add("conversation", messages)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range byChance {
		source := anyMessages(random)
		for _, factory := range []string{"browser-use", "langchain", "conversation", "tau"} {
			add(factory, source)
		}
	}
	return cases
}

// formMessages returns the messages in those samples that are JSON and in a form that snippets can
// also read.
func formMessages(t *testing.T) [][]any {
	t.Helper()
	var all [][]any
	for name, data := range formFiles(t) {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		source := decoded(t, data)
		if list, ok := source.([]any); ok {
			all = append(all, list)
		}
		object, _ := source.(map[string]any)
		for _, key := range []string{"messages", "contents", "conversations", "input", "output"} {
			if list, ok := object[key].([]any); ok {
				all = append(all, list)
			}
		}
	}

	if len(all) < 10 {
		t.Fatalf("there are %d lists of messages", len(all))
	}
	return all
}

func decoded(t *testing.T, data []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// anyMessages returns a list of objects with members of the known formats and with values that are
// usually right.
func anyMessages(random *rand.Rand) any {
	keys := map[string][]any{
		"role": {"user", "assistant", "tool", "system", "odd", 5},
		"content": {
			"text [ERROR]", "", nil,
			[]any{map[string]any{"type": "text", "text": "part"}, "bare"},
			[]any{map[string]any{"type": "tool_result", "tool_use_id": "a", "content": "r"}},
			map[string]any{"k": 1},
			false,
		},
		"tool_calls": {
			nil,
			[]any{
				map[string]any{"id": "a", "name": "search", "arguments": map[string]any{"q": "x"}},
			},
			[]any{
				map[string]any{
					"id": "b", "function": map[string]any{"name": "f", "arguments": "{}"},
				},
				"wrong",
			},
			"wrong",
		},
		"tool_call_id": {"a", "b", "", nil, 3},
		"error":        {true, false, nil, "wrong"},
		"requestor":    {"user", "assistant"},
		"model_output": {
			nil,
			map[string]any{
				"memory": "m", "action": []any{map[string]any{"click": map[string]any{"index": 1}}},
			},
			map[string]any{"current_state": map[string]any{"memory": 5}},
			[]any{},
		},
		"result":   {nil, []any{map[string]any{"error": "boom", "is_done": true}}, []any{"wrong"}},
		"state":    {nil, map[string]any{"url": "u"}, map[string]any{"title": 1}},
		"metadata": {nil, map[string]any{"step_start_time": 1.5}},
		"action": {
			map[string]any{"tool": "t", "tool_input": []any{1, "two"}, "log": " l "},
			map[string]any{"kwargs": map[string]any{"tool": "k"}},
			"wrong",
		},
		"observation": {"o", nil, map[string]any{"z": 1, "a": 2}},
	}
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	var list []any
	for range random.IntN(5) {
		m := map[string]any{"role": "user"}
		for range random.IntN(6) {
			name := names[random.IntN(len(names))]
			m[name] = keys[name][random.IntN(len(keys[name]))]
		}
		list = append(list, m)
	}
	if random.IntN(4) == 0 {
		return map[string]any{"history": list, "intermediate_steps": list}
	}
	return list
}

// classes returns the Python code of the guest.
func classes(t *testing.T) string {
	t.Helper()
	var all string
	for _, name := range []string{"guest.py", "testdata/trace_answers.py"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(data) + "\n"
	}
	return all
}

// compareLoaded compares the results of Python with those of the host's loader: a snippet that
// makes a trace again must get the steps that the host shows.
func compareLoaded(t *testing.T, cases []alike, got []any) {
	t.Helper()
	if len(got) != len(cases) {
		t.Fatalf("%d answers to %d cases", len(got), len(cases))
	}
	wrong := 0
	for i, c := range cases {
		want, _ := c.loaded(t).(map[string]any)
		answers, _ := got[i].(map[string]any)
		part := map[string]any{}
		for key := range want {
			part[key] = answers[key]
		}
		if values.DeepEqual(want, part) {
			continue
		}
		if wrong++; wrong > 5 {
			t.Fatal("and more")
		}
		t.Errorf(
			"case %d, %s of %.300v (limit %d):\n%s", i, c.Factory, c.Source, c.Limit,
			difference(want, part),
		)
	}
}

// recorded is the file with the answers for the cases in files, one per line.
const recorded = "testdata/trace_answers.jsonl"

var update = flag.Bool("update", false, "write the recorded answers anew")

// compareRecorded compares Python's answers with the recorded ones.
func compareRecorded(t *testing.T, got []any) {
	t.Helper()
	if *update {
		writeRecorded(t, got)
	}

	data, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != len(got) {
		t.Fatalf("%d answers to %d that are recorded", len(got), len(lines))
	}
	for i, line := range lines {
		if want := decodedPlain(t, line); !values.DeepEqual(want, got[i]) {
			t.Errorf("case %d:\n%s", i, difference(want, got[i]))
		}
	}
}

func writeRecorded(t *testing.T, got []any) {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, answers := range got {
		if err := encoder.Encode(answers); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(recorded, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func decodedPlain(t *testing.T, line string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatal(err)
	}

	return v
}

// difference describes which answers differ.
func difference(want, got any) string {
	w, _ := want.(map[string]any)
	g, _ := got.(map[string]any)
	var b strings.Builder
	for key := range w {
		if !values.DeepEqual(w[key], g[key]) {
			fmt.Fprintf(
				&b, "%s:\n  want: %.600q\n  got:  %.600q\n", key, fmt.Sprint(w[key]),
				fmt.Sprint(g[key]),
			)
		}
	}
	if b.Len() == 0 {
		return fmt.Sprintf("want: %.500v\ngot: %.500v", want, got)
	}
	return b.String()
}

func TestTracesAreAlikeInCPython(t *testing.T) {
	python := os.Getenv("RLM_PYTHON")
	if python == "" {
		if os.Getenv("RLM_REQUIRE_PYTHON") != "" {
			t.Fatal("RLM_PYTHON names no CPython")
		}
		t.Skip("RLM_PYTHON names no CPython")
	}
	cases := alikeCases(t, 300)
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	script := classes(
		t,
	) + "import sys\nprint(json.dumps([trace_make(case) for case in json.load(sys.stdin)]))\n"
	for _, python := range append([]string{python}, filepath.SplitList(os.Getenv("RLM_OLD_PYTHONS"))...) {
		command := exec.CommandContext(t.Context(), python, "-I", "-c", script)
		command.Stdin = bytes.NewReader(input)
		var stderr bytes.Buffer
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", python, err, stderr.String())
		}
		var got []any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		compareLoaded(t, cases, got)
		compareRecorded(t, got[:len(alikeCases(t, 0))])
	}
}

func TestTracesInASandbox(t *testing.T) {
	e := shared
	t.Run(
		"alike",
		func(t *testing.T) { tracesAreAlike(t, traceSession(t, e, router.Policy{}, "wasm")) },
	)
	t.Run("moves", func(t *testing.T) {
		aTraceMoves(t, traceSession(t, e, router.Policy{AllowLocal: true}, "wasm", "local"))
	})
	t.Run(
		"large",
		func(t *testing.T) { aLargeTraceIsBound(t, traceSession(t, e, router.Policy{}, "wasm")) },
	)
}

// traceSession opens a session on the tiers that a policy allows; the test needs some of them.
func traceSession(t *testing.T, e *rlm.Engine, p router.Policy, needs ...string) *loopsession.Session {
	t.Helper()
	for _, tier := range e.Tiers() {
		if name := tier.Info().Name; slices.Contains(needs, name) {
			tiertest.Require(t, name, tier.Probe(t.Context()))
		}
	}
	s, err := loopsession.Open(t.Context(), loopsession.Config{Open: e.Opener(p)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// final runs a snippet and returns the value passed to FINAL.
func final(t *testing.T, s *loopsession.Session, source string) any {
	t.Helper()
	ran, err := s.Run(context.Background(), loopsession.Block{Language: tiers.Python, Source: source})
	if err != nil {
		t.Fatal(err)
	}
	if ran.Final == nil {
		t.Fatalf("no answer: %s %+v %s", ran.Status, ran.Exception, ran.Stderr)
	}
	var v any
	if err := json.Unmarshal(ran.Final.Value, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func tracesAreAlike(t *testing.T, s *loopsession.Session) {
	t.Helper()
	if err := agenttrace.Bind(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	got := final(t, s, "FINAL([trace is None, TraceStep.__name__, TraceContext.__name__])")
	if !values.DeepEqual(got, []any{true, "TraceStep", "TraceContext"}) {
		t.Errorf("no trace: %v", got)
	}
	script, err := os.ReadFile("testdata/trace_answers.py")
	if err != nil {
		t.Fatal(err)
	}
	final(t, s, string(script)+"\nFINAL(1)")
	cases := alikeCases(t, 20) // the sandbox's Python has the same code but is slower
	if err := s.Assign(t.Context(), "cases", cases); err != nil {
		t.Fatal(err)
	}
	made, _ := final(t, s, "FINAL([trace_make(case) for case in cases])").([]any)
	compareLoaded(t, cases, made)
	compareRecorded(t, made[:len(alikeCases(t, 0))])

	// The host stores the same trace.
	for i, c := range cases[:40] {
		trace, err := c.make(t)
		if err != nil {
			continue
		}
		if err := agenttrace.Bind(t.Context(), s, trace); err != nil {
			t.Fatal(err)
		}
		kept := final(t, s, fmt.Sprintf("FINAL(trace_answers(trace, cases[%d]['probes']))", i))
		if !values.DeepEqual(kept, made[i]) {
			t.Errorf("case %d, %s, as it is kept: %s", i, c.Factory, difference(made[i], kept))
		}
	}
}

func aTraceMoves(t *testing.T, s *loopsession.Session) {
	t.Helper()
	trace := sample()
	if err := agenttrace.Bind(t.Context(), s, trace); err != nil {
		t.Fatal(err)
	}
	want := final(
		t, s, "found = trace.get_errors(); FINAL([trace.to_markdown(), [s.index for s in found]])",
	)
	from := s.Home()
	got := final(
		t, s,
		"import subprocess; subprocess.run(['true']); FINAL([trace.to_markdown(), [s.index for s in found]])",
	)
	if s.Home() == from || !values.DeepEqual(got, want) {
		t.Errorf("from %s to %s: %v, not %v", from, s.Home(), got, want)
	}
	got = final(
		t, s, "FINAL(found[0] is trace[1] and len(TraceContext.combine([trace, trace])) == 8)",
	)
	if got != true {
		t.Error("the steps are no longer those of the trace")
	}
}

func aLargeTraceIsBound(t *testing.T, s *loopsession.Session) {
	t.Helper()
	step := agenttrace.Step{
		Action: "reasoning", Thought: strings.Repeat("a line of thought\n", 1<<10),
	}
	trace := agenttrace.New(
		slices.Repeat([]agenttrace.Step{step}, 1<<10), strings.Repeat("x", 8<<20),
	)
	if err := agenttrace.Bind(t.Context(), s, trace); err != nil {
		t.Fatal(err)
	}
	got := final(
		t, s, "FINAL([len(trace), len(trace.raw_reasoning), len(trace.search_raw('THOUGHT'))])",
	)
	if !values.DeepEqual(got, []any{1024., 8388608., 1024.}) {
		t.Errorf("%v", got)
	}
}

func BenchmarkBindTrace(b *testing.B) {
	s, err := loopsession.Open(
		b.Context(), loopsession.Config{Open: shared.Opener(router.Policy{})},
	)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	trace := sample()
	for b.Loop() {
		if err := agenttrace.Bind(b.Context(), s, trace); err != nil {
			b.Fatal(err)
		}
	}
}
