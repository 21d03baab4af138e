package repl

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

func echo(_ context.Context, args map[string]tiers.Value) (tiers.Value, error) {
	return json.Marshal(args)
}

func call(name string, args ...string) tiers.Call {
	c := tiers.Call{Function: name}
	for _, a := range args {
		c.Args = append(c.Args, tiers.Value(a))
	}
	return c
}

func TestToolsBindCheckAndCoerce(t *testing.T) {
	tools, err := NewTools(Tool{
		Name: "search", Signature: `search(query, limit=10, kind: list[str] = ["a, b"])`, Doc: "searches.", Call: echo,
		Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tools.Call(t.Context(), call("search", `"x"`, `"3"`)); err != nil || string(got) != `{"limit":3,"query":"x"}` {
		t.Errorf("by place: %s %v", got, err)
	}
	named := call("search")
	named.Named = map[string]tiers.Value{"query": tiers.Value(`"x"`), "kind": tiers.Value(`["z"]`)}
	if got, err := tools.Call(t.Context(), named); err != nil || string(got) != `{"kind":["z"],"query":"x"}` {
		t.Errorf("by name: %s %v", got, err)
	}
	for what, c := range map[string]tiers.Call{
		"takes 3 arguments": call("search", "1", "2", "3", "4"),
		"do not fit":        call("search", "5", `"many"`),
		"no parameter":      {Function: "search", Named: map[string]tiers.Value{"wrong": nil}},
		"twice":             {Function: "search", Args: []tiers.Value{tiers.Value(`"x"`)}, Named: map[string]tiers.Value{"query": tiers.Value(`"y"`)}},
		"no function":       call("other"),
	} {
		if _, err := tools.Call(t.Context(), c); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if p := tools.Prompt(); !strings.Contains(p, "- `search(query") || !strings.Contains(p, "searches.") {
		t.Errorf("the prompt is %q", p)
	}
}

func TestReservedNamesCannotBeTaken(t *testing.T) {
	for _, name := range append(Names(), "FINAL", "FINAL_VAR", "SUBMIT", "SHOW_VARS", "context", "context_3", "history", "answer", "parallel_map", keeper, "not a name", "class", "__x") {
		if _, err := NewTools(Tool{Name: name, Call: echo}); err == nil {
			t.Errorf("a tool took the name %q", name)
		}
	}
	for what, tool := range map[string]Tool{
		"no Call":   {Name: "a"},
		"signature": {Name: "a", Signature: "b()", Call: echo},
		"schema":    {Name: "a", Schema: json.RawMessage(`{"type":"nonsense"}`), Call: echo},
	} {
		if _, err := NewTools(tool); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := NewTools(Tool{Name: "a", Call: echo}, Tool{Name: "a", Call: echo}); err == nil {
		t.Error("two tools have one name")
	}
}

// noting is an Answerer that says what it was asked.
type noting struct{ asked []string }

func (n *noting) note(kind string, q Query) (json.RawMessage, error) {
	n.asked = append(n.asked, strings.Join([]string{kind, string(q.Prompt), string(q.Context), string(q.Schema), q.Model}, "|"))
	return json.RawMessage("1"), nil
}

func (n *noting) Leaf(_ context.Context, q Query) (json.RawMessage, error) {
	return n.note("leaf", q)
}

func (n *noting) Sub(_ context.Context, q Query) (json.RawMessage, error) {
	return n.note("sub", q)
}

func (n *noting) Ask(_ context.Context, q Query, mode string) (json.RawMessage, error) {
	return n.note(mode, q)
}

func (n *noting) Agent(_ context.Context, id string, q Query) (json.RawMessage, error) {
	return n.note(id, q)
}

func (n *noting) Predict(context.Context, Prediction) (json.RawMessage, error) {
	return json.RawMessage("{}"), nil
}

func (n *noting) Many(ctx context.Context, queries []Query, _ bool) ([]Slot[json.RawMessage], error) {
	slots := make([]Slot[json.RawMessage], len(queries))
	for i, q := range queries {
		slots[i].Value, slots[i].Err = n.note("many", q)
		if string(q.Prompt) == `"fail"` {
			slots[i] = Slot[json.RawMessage]{Err: errors.New("broke")}
		}
	}
	return slots, ctx.Err()
}
func (n *noting) Foresee(context.Context, []Query) error { return nil }
func (n *noting) Knows(model string) bool                { return model == "gpt" }

func TestDialectsBindToTheSameQuery(t *testing.T) {
	for _, c := range []struct {
		call  tiers.Call
		asked string // first query, or part of the error
	}{
		{call("llm_query", `"p"`), `leaf|"p"|||`},
		{call("llm_query", `"p"`, `"gpt"`), `leaf|"p"|||gpt`},
		{call("llm_query", `"p"`, `"text"`), `leaf|"p"|"text"||`},
		{call("llm_query", `"p"`, `"text"`, `"gpt"`), `leaf|"p"|"text"||gpt`},
		{call("llm_query", `"p"`, `null`, `"bool"`), `leaf|"p"||"bool"|`},
		{call("llm_query", `"p"`, `{"__rlm_text__":[0,1,2]}`), `leaf|"p"|{"__rlm_text__":[0,1,2]}||`},
		{call("rlm_query", `"p"`, `"text"`, `{"type":"null"}`, `"gpt"`), `sub|"p"|"text"|{"type":"null"}|gpt`},
		{call("rlm_query", `"p"`, `"gpt"`), `sub|"p"|||gpt`},
		{call("rlm_query_batched", `["p"]`, `["c"]`, `"bool"`), `many|"p"|"c"|"bool"|`},
		{call("llm_query_batched", `["p", {"prompt": "q"}]`, `"gpt"`), `many|"p"|||gpt`},
		{call("run_parallel_sub_calls", `{"query": "q", "data": [1]}`), `many|"q"|[1]||`},
		{call("sub_agent_call", `"p"`, `"id"`, `"d"`), `id|"p"|"d"||`},
		{call("llm_query"), "prompt is missing"},
		{call("llm_query", `"p"`, `null`, `null`, `null`, `null`), "takes 4 arguments"},
		{call("llm_query_batched", `["p"]`, `["a", "b"]`), "1 prompts and 2 contexts"},
		{call("llm_query_batched", `[{"context": "c"}]`), `many|{"context": "c"}|||`},
		{call("rlm_query", `"p"`, `"c"`, `null`, `"nobody"`), `no model "nobody"`},
		{call("reduce_llm", `"p"`, `[]`), "there are no items"},
		{call("tally", `["a"]`, `null`, `"p"`), "needs labels"},
		{call("predict", `5`), "signature must be a str"},
	} {
		n := &noting{}
		tools, err := (*Tools)(nil).With(Protocol(n)...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tools.Call(t.Context(), c.call)
		got := strings.Join(n.asked, "\n")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.asked) {
			t.Errorf("%s%s: %q, want %q", c.call.Function, c.call.Args, got, c.asked)
		}
	}
}

func TestFailedSlots(t *testing.T) {
	tools, err := (*Tools)(nil).With(Protocol(&noting{})...)
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]tiers.Call{
		`[1,"Error: broke"]`:                   call("llm_query_batched", `["a","fail"]`),
		`[1,{"__rlm_error__":"Error: broke"}]`: call("llm_query_batched", `["a","fail"]`, `null`, `"int"`),
		`[{"__rlm_error__":"Error: broke"}]`:   call("run_parallel_sub_calls", `[{"prompt":"fail"}]`),
	} {
		if got, err := tools.Call(t.Context(), c); err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", c.Function, got, err, want)
		}
	}
}

// FuzzProtocol feeds the protocol's functions what a hostile guest may send.
func FuzzProtocol(f *testing.F) {
	f.Add(0, `"p"`, `null`, `{"prompt":"x"}`)
	f.Add(7, `["p", {"prompt": 1}]`, `["c", 2]`, `{"schema": {"type": "x"}}`)
	f.Add(12, `"a -> b: int"`, `[]`, `{"a": {"__rlm_text__": [0, -1, 99]}}`)
	f.Fuzz(func(t *testing.T, which int, a, b, named string) {
		c := tiers.Call{Function: Names()[uint(which)%uint(len(Names()))]}
		for _, arg := range []string{a, b} {
			if json.Valid([]byte(arg)) {
				c.Args = append(c.Args, tiers.Value(arg))
			}
		}
		_ = json.Unmarshal([]byte(named), &c.Named)
		tools, err := (*Tools)(nil).With(Protocol(&noting{})...)
		if err != nil {
			t.Fatal(err)
		}
		if value, err := tools.Call(t.Context(), c); err == nil && !json.Valid(value) {
			t.Errorf("%s answered %q, which is no JSON", c.Function, value)
		}
	})
}

func TestNamesAreOnce(t *testing.T) {
	names := Names()
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a name is there twice: %v", names)
	}
}
