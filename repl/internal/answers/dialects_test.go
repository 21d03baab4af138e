package answers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/fanout"
	"github.com/rlmhq/rlm/tiers"
)

// noting is an Answerer that records the queries that it receives.
type noting struct{ asked []string }

func (n *noting) note(kind string, q Query) (json.RawMessage, error) {
	parts := []string{kind, string(q.Prompt), string(q.Context), string(q.Schema), q.Model}
	for _, image := range q.Images {
		parts = append(parts, image.Type)
	}
	n.asked = append(n.asked, strings.Join(parts, "|"))
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

func (n *noting) Many(
	ctx context.Context, queries []Query, _ bool,
) ([]fanout.Slot[json.RawMessage], error) {
	slots := make([]fanout.Slot[json.RawMessage], len(queries))
	for i, q := range queries {
		slots[i].Value, slots[i].Err = n.note("many", q)
		if string(q.Prompt) == `"fail"` {
			slots[i] = fanout.Slot[json.RawMessage]{Err: errors.New("broke")}
		}
	}
	return slots, ctx.Err()
}

func (n *noting) Foresee(context.Context, []Query) error { return nil }

func (n *noting) Lack(string, int64, int64) {}

func (n *noting) Knows(model string) bool { return model == "gpt" }

func callOf(name string, args ...string) tiers.Call {
	c := tiers.Call{Function: name}
	for _, a := range args {
		c.Args = append(c.Args, tiers.Value(a))
	}

	return c
}

func TestDialectsBindToTheSameQuery(t *testing.T) {
	for _, c := range []struct {
		call  tiers.Call
		asked string // first query, or part of the error
	}{
		{callOf("llm_query", `"p"`), `leaf|"p"|||`},
		{callOf("llm_query", `"p"`, `"gpt"`), `leaf|"p"|||gpt`},
		{callOf("llm_query", `"p"`, `"text"`), `leaf|"p"|"text"||`},
		{callOf("llm_query", `"p"`, `"text"`, `"gpt"`), `leaf|"p"|"text"||gpt`},
		{callOf("llm_query", `"p"`, `null`, `"bool"`), `leaf|"p"||"bool"|`},
		{callOf("llm_query", `"p"`, `{"__rlm_text__":[0,1,2]}`), `leaf|"p"|{"__rlm_text__":[0,1,2]}||`},
		{callOf("rlm_query", `"p"`, `"text"`, `{"type":"null"}`, `"gpt"`), `sub|"p"|"text"|{"type":"null"}|gpt`},
		{callOf("rlm_query", `"p"`, `"gpt"`), `sub|"p"|||gpt`},
		{callOf("rlm_query_batched", `["p"]`, `["c"]`, `"bool"`), `many|"p"|"c"|"bool"|`},
		{callOf("llm_query_batched", `["p", {"prompt": "q"}]`, `"gpt"`), `many|"p"|||gpt`},
		{callOf("run_parallel_sub_calls", `{"query": "q", "data": [1]}`), `many|"q"|[1]||`},
		{callOf("sub_agent_call", `"p"`, `"id"`, `"d"`), `id|"p"|"d"||`},
		{callOf("llm_query"), "prompt is missing"},
		{callOf("llm_query", `"p"`, `null`, `null`, `null`, `null`, `null`), "takes 5 arguments"},
		{callOf("llm_query_batched", `["p"]`, `["a", "b"]`), "1 prompts and 2 contexts"},
		{callOf("llm_query_batched", `[{"context": "c"}]`), `many|{"context": "c"}|||`},
		{callOf("rlm_query", `"p"`, `"c"`, `null`, `"nobody"`), `unknown model "nobody"`},
		{callOf("reduce_llm", `"p"`, `[]`), "there are no items"},
		{callOf("tally", `["a"]`, `null`, `"p"`), "needs labels"},
		{callOf("predict", `5`), "signature must be a str"},
	} {
		got, _ := askNoting(t, c.call)
		if !strings.Contains(got, c.asked) {
			t.Errorf("%s%s: %q, want %q", c.call.Function, c.call.Args, got, c.asked)
		}
	}
}

// askNoting makes a call. It returns the query that the Answerer received, or the error and its
// message.
func askNoting(t *testing.T, call tiers.Call) (string, error) {
	t.Helper()
	n := &noting{}
	tools, err := (*repl.Tools)(nil).With(Functions(n)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = tools.Call(t.Context(), call); err != nil {
		return err.Error(), err
	}
	return strings.Join(n.asked, "\n"), nil
}

func TestFailedSlots(t *testing.T) {
	tools, err := (*repl.Tools)(nil).With(Functions(&noting{})...)
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]tiers.Call{
		`[1,{"__rlm_failed__":"Error: broke"}]`: callOf("llm_query_batched", `["a","fail"]`),
		`[1,{"__rlm_error__":"Error: broke"}]`:  callOf("llm_query_batched", `["a","fail"]`, `null`, `"int"`),
		`[{"__rlm_failed__":"Error: broke"}]`:   callOf("run_parallel_sub_calls", `[{"prompt":"fail"}]`),
		`[{"__rlm_error__":"Error: broke"}]`: callOf("run_parallel_sub_calls",
			`[{"prompt":"fail","schema":"int"}]`),
	} {
		t.Run(want, func(t *testing.T) {
			if got, err := tools.Call(t.Context(), c); err != nil || string(got) != want {
				t.Errorf("%s: %s %v, want %s", c.Function, got, err, want)
			}
		})
	}
}

// FuzzProtocol passes hostile input to the protocol's functions.
func FuzzProtocol(f *testing.F) {
	f.Add(0, `"p"`, `null`, `{"prompt":"x"}`)
	f.Add(7, `["p", {"prompt": 1}]`, `["c", 2]`, `{"schema": {"type": "x"}}`)
	f.Add(12, `"a -> b: int"`, `[]`, `{"a": {"__rlm_text__": [0, -1, 99]}}`)
	functions := protocol.Functions()
	f.Fuzz(func(t *testing.T, which int, a, b, named string) {
		c := tiers.Call{Function: functions[uint(which)%uint(len(functions))].Name}
		for _, arg := range []string{a, b} {
			if json.Valid([]byte(arg)) {
				c.Args = append(c.Args, tiers.Value(arg))
			}
		}
		_ = json.Unmarshal([]byte(named), &c.Named)
		tools, err := (*repl.Tools)(nil).With(Functions(&noting{})...)
		if err != nil {
			t.Fatal(err)
		}
		if value, err := tools.Call(t.Context(), c); err == nil && !json.Valid(value) {
			t.Errorf("%s answered %q, which is no JSON", c.Function, value)
		}
	})
}
