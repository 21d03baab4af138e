package reflect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	values "reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	engine "github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// alike is a source, the factory that makes a trace of it, and what the trace is
// asked.
type alike struct {
	Factory string   `json:"factory"`
	Source  any      `json:"source"`
	Limit   int      `json:"limit"`
	System  string   `json:"system"`
	Probes  []string `json:"probes"`
	// Objects has Python make objects of the source, such as the libraries have.
	Objects bool `json:"objects"`
}

// make makes the trace in Go.
func (c alike) make(t *testing.T) (*reflect.TraceContext, error) {
	t.Helper()
	data, err := json.Marshal(c.Source)
	if err != nil {
		t.Fatal(err)
	}
	switch c.Factory {
	case "agent":
		parsed, err := reflect.ParseTrace(data, reflect.FormatAgent)
		return parsed.Trace, err
	case "reasoning":
		return reflect.FromReasoningString(c.Source.(string)), nil
	case "browser-use":
		return reflect.FromBrowserUse(data)
	case "langchain":
		return reflect.FromLangChain(data)
	case "conversation":
		return reflect.FromConversationHistory(data, c.Limit)
	case "tau":
		return reflect.FromTauSimulation(data, c.System)
	}
	var all []*reflect.TraceContext
	for _, text := range c.Source.([]any) {
		all = append(all, reflect.FromReasoningString(text.(string)))
	}
	return reflect.Combine(all...), nil
}

// answers are what the trace says, as testdata/trace_answers.py has it.
func (c alike) answers(t *testing.T) any {
	t.Helper()
	trace, err := c.make(t)
	if err != nil {
		return plain(t, map[string]any{"error": strings.TrimPrefix(err.Error(), "cannot read the trace as agent: ")})
	}
	return plain(t, traceAnswers(t, trace, c.Probes))
}

func traceAnswers(t *testing.T, trace *reflect.TraceContext, probes []string) map[string]any {
	t.Helper()
	indices := func(steps []reflect.TraceStep) []int {
		all := []int{}
		for _, s := range steps {
			all = append(all, s.Index)
		}
		return all
	}
	each := func(answer func(reflect.TraceStep) any) []any {
		all := []any{}
		for _, s := range trace.All() {
			all = append(all, answer(s))
		}
		return all
	}
	ask := func(answer func(probe string) (any, error)) []any {
		all := []any{}
		for _, p := range probes {
			got, err := answer(p)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, got)
		}
		return all
	}
	get := []any{}
	for _, i := range []int{0, 1, -1, trace.Len(), 1e9} {
		if s, ok := trace.Step(i); ok {
			get = append(get, s.Index)
		} else {
			get = append(get, nil)
		}
	}
	return map[string]any{
		"steps": each(func(s reflect.TraceStep) any {
			return []any{s.Index, s.Action, s.Thought, s.Observation, s.Timestamp, s.Metadata}
		}),
		"raw": trace.RawReasoning(), "system": trace.SystemPrompt(), "len": trace.Len(),
		"same":    each(func(s reflect.TraceStep) any { return values.DeepEqual(s, trace.Steps()[s.Index]) }),
		"get":     get,
		"content": each(func(s reflect.TraceStep) any { return s.Content() }),
		"preview": each(func(s reflect.TraceStep) any {
			return []string{s.Preview(reflect.DefaultPreview), s.Preview(7), s.Preview(0)}
		}),
		"repr":    each(func(s reflect.TraceStep) any { return s.Repr() }),
		"str":     each(func(s reflect.TraceStep) any { return s.String() }),
		"errors":  indices(trace.Errors()),
		"summary": trace.Summary(), "markdown": trace.Markdown(),
		"actions":   ask(func(p string) (any, error) { return indices(trace.Actions(p)), nil }),
		"find":      ask(func(p string) (any, error) { return indices(trace.FindSteps(p, false)), nil }),
		"find_case": ask(func(p string) (any, error) { return indices(trace.FindSteps(p, true)), nil }),
		"regex": ask(func(p string) (any, error) {
			found, err := trace.FindStepsRegex(regexp.QuoteMeta(p))
			return indices(found), err
		}),
		"regex_flags": ask(func(p string) (any, error) {
			found, err := trace.FindStepsRegex("(?m)^" + regexp.QuoteMeta(p))
			return indices(found), err
		}),
		"search":      ask(func(p string) (any, error) { return trace.SearchRaw(regexp.QuoteMeta(p)) }),
		"search_text": ask(func(p string) (any, error) { return trace.SearchRawText(regexp.QuoteMeta(p) + "[a-z]*") }),
	}
}

// plain is a value as it is after a way through JSON.
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

// alikeCases are the files of testdata/traces, by the factories that read them, and
// some sources made by chance, most of which are wrong in some place.
func alikeCases(t *testing.T, byChance int) []alike {
	t.Helper()
	files, err := filepath.Glob("testdata/traces/*")
	if err != nil || len(files) < 10 {
		t.Fatal("the traces are not there", err)
	}
	probes := []string{"error", "CITY", "köln", "straße", "tool_call", "tool_call:search", "user", "[", "Agent", "é", "ς", "Kelvin", "1", "t"}
	var cases []alike
	add := func(factory string, source any) {
		for _, limit := range []int{0, 12} {
			cases = append(cases, alike{Factory: factory, Source: source, Limit: limit, System: "Policy: be kind.", Probes: probes})
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
		for _, factory := range []string{"agent", "browser-use", "langchain", "conversation", "tau"} {
			add(factory, source)
			if object, ok := source.(map[string]any); ok && object["messages"] != nil {
				add(factory, object["messages"])
			}
		}
	}
	for name, factory := range map[string]string{"agent.json": "agent", "browser-use.json": "browser-use", "langchain.json": "langchain", "tau.json": "tau"} {
		data, err := os.ReadFile(filepath.Join("testdata", "traces", name))
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
	random := rand.New(rand.NewPCG(1, 2))
	for range byChance {
		source := anyMessages(random)
		for _, factory := range []string{"browser-use", "langchain", "conversation", "tau"} {
			add(factory, source)
		}
	}
	return cases
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

// anyMessages is a list of objects with the members that the formats know, and with
// values that are right more often than not.
func anyMessages(random *rand.Rand) any {
	keys := map[string][]any{
		"role":         {"user", "assistant", "tool", "system", "odd", 5},
		"content":      {"text [ERROR]", "", nil, []any{map[string]any{"type": "text", "text": "part"}, "bare"}, []any{map[string]any{"type": "tool_result", "tool_use_id": "a", "content": "r"}}, map[string]any{"k": 1}, false},
		"tool_calls":   {nil, []any{map[string]any{"id": "a", "name": "search", "arguments": map[string]any{"q": "x"}}}, []any{map[string]any{"id": "b", "function": map[string]any{"name": "f", "arguments": "{}"}}, "wrong"}, "wrong"},
		"tool_call_id": {"a", "b", "", nil, 3},
		"error":        {true, false, nil, "wrong"},
		"requestor":    {"user", "assistant"},
		"model_output": {nil, map[string]any{"memory": "m", "action": []any{map[string]any{"click": map[string]any{"index": 1}}}}, map[string]any{"current_state": map[string]any{"memory": 5}}, []any{}},
		"result":       {nil, []any{map[string]any{"error": "boom", "is_done": true}}, []any{"wrong"}},
		"state":        {nil, map[string]any{"url": "u"}, map[string]any{"title": 1}},
		"metadata":     {nil, map[string]any{"step_start_time": 1.5}},
		"action":       {map[string]any{"tool": "t", "tool_input": []any{1, "two"}, "log": " l "}, map[string]any{"kwargs": map[string]any{"tool": "k"}}, "wrong"},
		"observation":  {"o", nil, map[string]any{"z": 1, "a": 2}},
	}
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
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

// classes is the Python of the guest.
func classes(t *testing.T) string {
	t.Helper()
	var all string
	for _, name := range []string{"traceguest.py", "testdata/trace_answers.py"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(data) + "\n"
	}
	return all
}

func compareAlike(t *testing.T, cases []alike, got []any) {
	t.Helper()
	if len(got) != len(cases) {
		t.Fatalf("%d answers to %d cases", len(got), len(cases))
	}
	wrong := 0
	for i, c := range cases {
		want := c.answers(t)
		if values.DeepEqual(want, got[i]) {
			continue
		}
		if wrong++; wrong > 5 {
			t.Fatal("and more")
		}
		t.Errorf("case %d, %s of %.300v (limit %d):\n%s", i, c.Factory, c.Source, c.Limit, difference(want, got[i]))
	}
}

// difference says which answers differ.
func difference(want, got any) string {
	w, _ := want.(map[string]any)
	g, _ := got.(map[string]any)
	var b strings.Builder
	for key := range w {
		if !values.DeepEqual(w[key], g[key]) {
			fmt.Fprintf(&b, "%s:\n  Go:     %.600q\n  Python: %.600q\n", key, fmt.Sprint(w[key]), fmt.Sprint(g[key]))
		}
	}
	if b.Len() == 0 {
		return fmt.Sprintf("Go: %.500v\nPython: %.500v", want, got)
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
	script := classes(t) + "import sys\nprint(json.dumps([trace_make(case) for case in json.load(sys.stdin)]))\n"
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
		compareAlike(t, cases, got)
	}
}

// TestTracesInASandbox has one engine, since a new one has to compile the interpreter.
func TestTracesInASandbox(t *testing.T) {
	e, err := engine.New(engine.Options{CacheDir: testcache.Dir(), Python: os.Getenv("RLM_LOCAL_PYTHON")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	t.Run("alike", func(t *testing.T) { tracesAreAlike(t, traceSession(t, e, router.Policy{}, "wasm")) })
	t.Run("moves", func(t *testing.T) {
		aTraceMoves(t, traceSession(t, e, router.Policy{AllowLocal: true}, "wasm", "local"))
	})
	t.Run("large", func(t *testing.T) { aLargeTraceIsBound(t, traceSession(t, e, router.Policy{}, "wasm")) })
}

// traceSession is a session on the tiers that a policy allows, of which the test needs
// some.
func traceSession(t *testing.T, e *engine.Engine, p router.Policy, needs ...string) *repl.Session {
	t.Helper()
	for _, tier := range e.Tiers() {
		if name := tier.Info().Name; slices.Contains(needs, name) {
			tiertest.Require(t, name, tier.Probe(t.Context()))
		}
	}
	s, err := repl.OpenSession(t.Context(), repl.SessionConfig{Open: e.Opener(p)})
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

// final runs a snippet and returns what it hands to FINAL.
func final(t *testing.T, s *repl.Session, source string) any {
	t.Helper()
	ran, err := s.Run(context.Background(), repl.Block{Language: tiers.Python, Source: source})
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

func tracesAreAlike(t *testing.T, s *repl.Session) {
	t.Helper()
	if err := reflect.BindTrace(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	if got := final(t, s, "FINAL([trace is None, TraceStep.__name__, TraceContext.__name__])"); !values.DeepEqual(got, []any{true, "TraceStep", "TraceContext"}) {
		t.Errorf("no trace: %v", got)
	}
	script, err := os.ReadFile("testdata/trace_answers.py")
	if err != nil {
		t.Fatal(err)
	}
	final(t, s, string(script)+"\nFINAL(1)")
	cases := alikeCases(t, 20) // the sandbox's Python is the same, and slower
	if err := s.Assign(t.Context(), "cases", cases); err != nil {
		t.Fatal(err)
	}
	got, _ := final(t, s, "FINAL([trace_make(case) for case in cases])").([]any)
	compareAlike(t, cases, got)

	// What the host keeps is the same trace.
	for i, c := range cases[:40] {
		trace, err := c.make(t)
		if err != nil {
			continue
		}
		if err := reflect.BindTrace(t.Context(), s, trace); err != nil {
			t.Fatal(err)
		}
		got := final(t, s, fmt.Sprintf("FINAL(trace_answers(trace, cases[%d]['probes']))", i))
		if want := c.answers(t); !values.DeepEqual(want, got) {
			t.Errorf("case %d, %s, as it is kept: %s", i, c.Factory, difference(want, got))
		}
	}
}

func aTraceMoves(t *testing.T, s *repl.Session) {
	t.Helper()
	trace := sample()
	if err := reflect.BindTrace(t.Context(), s, trace); err != nil {
		t.Fatal(err)
	}
	want := final(t, s, "found = trace.get_errors(); FINAL([trace.to_markdown(), [s.index for s in found]])")
	from := s.Home()
	got := final(t, s, "import subprocess; subprocess.run(['true']); FINAL([trace.to_markdown(), [s.index for s in found]])")
	if s.Home() == from || !values.DeepEqual(got, want) {
		t.Errorf("from %s to %s: %v, not %v", from, s.Home(), got, want)
	}
	if got := final(t, s, "FINAL(found[0] is trace[1] and len(TraceContext.combine([trace, trace])) == 8)"); got != true {
		t.Error("the steps are no longer those of the trace")
	}
}

func aLargeTraceIsBound(t *testing.T, s *repl.Session) {
	t.Helper()
	step := reflect.TraceStep{Action: "reasoning", Thought: strings.Repeat("a line of thought\n", 1<<10)}
	trace := reflect.NewTraceContext(slices.Repeat([]reflect.TraceStep{step}, 1<<10), strings.Repeat("x", 8<<20))
	if err := reflect.BindTrace(t.Context(), s, trace); err != nil {
		t.Fatal(err)
	}
	if got := final(t, s, "FINAL([len(trace), len(trace.raw_reasoning), len(trace.search_raw('THOUGHT'))])"); !values.DeepEqual(got, []any{1024., 8388608., 1024.}) {
		t.Errorf("%v", got)
	}
}

func BenchmarkBindTrace(b *testing.B) {
	e, err := engine.New(engine.Options{CacheDir: testcache.Dir()})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	s, err := repl.OpenSession(b.Context(), repl.SessionConfig{Open: e.Opener(router.Policy{})})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	trace := sample()
	for b.Loop() {
		if err := reflect.BindTrace(b.Context(), s, trace); err != nil {
			b.Fatal(err)
		}
	}
}
