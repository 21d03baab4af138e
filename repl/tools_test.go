package repl

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
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
		Name:      "search",
		Signature: `search(query, limit=10, kind: list[str] = ["a, b"])`,
		Doc:       "searches.",
		Call:      echo,
		Schema: json.RawMessage(`{"type":"object","required":["query"],` +
			`"properties":{"query":{"type":"string"},"limit":{"type":"integer"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tools.Call(t.Context(), call("search", `"x"`, `"3"`)); err != nil ||
		string(got) != `{"limit":3,"query":"x"}` {
		t.Errorf("by place: %s %v", got, err)
	}
	named := call("search")
	named.Named = map[string]tiers.Value{"query": tiers.Value(`"x"`), "kind": tiers.Value(`["z"]`)}
	if got, err := tools.Call(t.Context(), named); err != nil ||
		string(got) != `{"kind":["z"],"query":"x"}` {
		t.Errorf("by name: %s %v", got, err)
	}
	for what, c := range map[string]tiers.Call{
		"takes 3 arguments":       call("search", "1", "2", "3", "4"),
		"do not match the schema": call("search", "5", `"many"`),
		"no parameter":            {Function: "search", Named: map[string]tiers.Value{"wrong": nil}},
		"unknown function":        call("other"),
		"twice": {
			Function: "search", Args: []tiers.Value{tiers.Value(`"x"`)},
			Named: map[string]tiers.Value{"query": tiers.Value(`"y"`)},
		},
	} {
		if _, err := tools.Call(t.Context(), c); err == nil ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if p, _ := tools.Prompt(); !strings.Contains(p, "- `search(query") ||
		!strings.Contains(p, "searches.") {
		t.Errorf("the prompt is %q", p)
	}
}

func TestReservedNamesCannotBeTaken(t *testing.T) {
	for _, name := range append(functionNames(),
		"FINAL", "FINAL_VAR", "SUBMIT", "SHOW_VARS", "context", "context_3", "history", "answer",
		"parallel_map", protocol.Stash, "not a name", "class", "__x",
	) {
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

func TestNamesAreOnce(t *testing.T) {
	names := functionNames()
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a name is there twice: %v", names)
	}
}
