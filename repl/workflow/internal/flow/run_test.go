package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestNodesShareTheState checks that later nodes receive the results of earlier ones.
//
// Source 004, repl/workflow/internal/flow/run.go: nodes: name, uses, with, run and output;
// state is shared by the nodes.
func TestNodesShareTheState(t *testing.T) {
	skip.WithoutJail(t)
	models := says("hello")
	file := parse(t, `
nodes:
  - name: ask
    uses: llm.call
    with: {prompt: "Greet {{ state.name }}.", system: short}
    output: greeting
  - name: shout
    run: |
      text = """a
      b"""
      return {"message": state["greeting"]["content"].upper(), "n": state["n"] + 1, "text": text}
  - name: as_output
    run: return [state["message"], 2.0]
    output: list
`)
	outcome, err := file.Run(t.Context(), config(models), map[string]any{"name": "Ann", "n": 1})
	if err != nil || outcome.Status != flow.StatusDone {
		t.Fatalf("%+v, %v", outcome, err)
	}
	const want = `{"greeting":{"content":"hello"},"list":["HELLO",2.0],"message":"HELLO","n":2,` +
		`"name":"Ann","text":"a\nb"}`
	if got := asJSON(t, outcome.State); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := asJSON(t, outcome.Result); got != `["HELLO",2.0]` {
		t.Errorf("the result is %s", got)
	}
	if r := models.requests[0]; r.Messages[0].Content != "short" || last(r) != "Greet Ann." ||
		r.Metadata.Purpose != flow.LLMCall {
		t.Errorf("asked %+v", r)
	}
}

func TestParametersOfLLMCall(t *testing.T) {
	skip.WithoutJail(t)
	models := &asked{answer: func(r llm.Request) (string, error) {
		if r.Schema != nil {
			return "```json\n{\"n\": \"7\"}\n```", nil
		}
		return r.Model + "|" + last(r), nil
	}}
	cfg := config(models)
	cfg.AllowedModels, cfg.ModelFor = []string{"test/other"}, map[string]string{"gpt-4": "test/mine"}
	for with, want := range map[string]string{
		`{prompt: hi}`:                    `{"content":"test/default|hi"}`,
		`{prompt: hi, model: test/other}`: `{"content":"test/other|hi"}`,
		`{prompt: hi, model: gpt-4, temperature: 0.5, max_tokens: 9}`:            `{"content":"test/mine|hi"}`,
		`{prompt: hi, model: "{{ state.m }}"}`:                                   `{"content":"test/other|hi"}`,
		`{prompt: hi, schema: {type: object, properties: {n: {type: integer}}}}`: `{"content":{"n":7}}`,
	} {
		t.Run(fmt.Sprintf("%.60s", with), func(t *testing.T) {
			outcome, err := parse(
				t, "nodes:\n  - uses: llm.call\n    with: "+with+"\n    output: o\n",
			).Run(t.Context(), cfg, map[string]any{"m": "test/other"})
			if err != nil {
				t.Errorf("%s: %v", with, err)
				return
			}
			if got := asJSON(t, outcome.Result); got != want {
				t.Errorf("%s: got %s, want %s", with, got, want)
			}
		})
	}
	for _, r := range models.requests {
		if r.Model == "test/mine" &&
			(r.MaxTokens != 9 || r.Temperature == nil || *r.Temperature != 0.5) {
			t.Errorf("asked %+v", r)
		}
	}
	// The state's model takes precedence over the default.
	outcome, err := parse(
		t, "nodes:\n  - uses: llm.call\n    with: {prompt: hi}\n",
	).Run(t.Context(), cfg, map[string]any{"model": "gpt-4"})
	if err != nil || asJSON(t, outcome.Result) != `{"content":"test/mine|hi"}` {
		t.Errorf("got %+v, %v", outcome, err)
	}
	// A member of that name may also have another meaning.
	outcome, err = parse(
		t, "nodes:\n  - uses: llm.call\n    with: {prompt: hi}\n",
	).Run(t.Context(), cfg, map[string]any{"model": "a car"})
	if err != nil || asJSON(t, outcome.Result) != `{"content":"test/default|hi"}` {
		t.Errorf("got %+v, %v", outcome, err)
	}
}

func TestAFileAsksOnlyModelsThatAreAllowed(t *testing.T) {
	skip.WithoutJail(t)
	models := says("never")
	_, err := parse(
		t, "nodes:\n  - uses: llm.call\n    with:\n      prompt: hi\n      model: expensive/one\n",
	).Run(t.Context(), config(models), nil)
	var found *flow.FileError
	if !errors.As(err, &found) || !strings.HasPrefix(
		err.Error(), `w.yaml:5:14: the file names the model "expensive/one"`,
	) {
		t.Errorf("got %v", err)
	}
	_, err = parse(
		t,
		"nodes:\n  - uses: llm.call\n    with: {prompt: hi, model: \"{{ 'expensive/' ~ 'one' }}\"}\n",
	).Run(t.Context(), config(models), nil)
	var ended *flow.NodeError
	if !errors.As(err, &ended) || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("got %v", err)
	}
	cfg := config(models)
	cfg.Model = ""
	ask := parse(t, "nodes:\n  - run: return {}\n  - uses: llm.call\n    with: {prompt: hi}\n")
	_, err = ask.Run(t.Context(), cfg, nil)
	if !errors.As(err, &found) ||
		!strings.HasPrefix(err.Error(), "w.yaml:3:11: no model to ask") {
		t.Errorf("got %v", err)
	}
	cfg.AllowedModels = []string{"test/default"} // a model that the state could name
	_, err = ask.Run(t.Context(), cfg, nil)
	if !errors.As(err, &ended) || ended.Node != "node 2" ||
		!strings.Contains(err.Error(), "no model to ask") {
		t.Errorf("got %v", err)
	}
	if len(models.requests) != 0 {
		t.Errorf("asked %d times", len(models.requests))
	}
}

func TestHowRunsEnd(t *testing.T) {
	skip.WithoutJail(t)
	canceled, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	failing := &asked{answer: func(r llm.Request) (string, error) {
		cancel(stop)
		return "", &llm.Error{Kind: errors.New("no reply on file"), Model: r.Model, Message: "away"}
	}}
	ask := "nodes:\n  - name: n\n    uses: llm.call\n    with: {prompt: hi}\n"
	run := func(code string) string { return "nodes:\n  - name: n\n    run: |\n      " + code + "\n" }
	cut := says("one, two and th")
	cut.finish = llm.FinishLength
	small := config(says("x"))
	small.Budget = ledger.Budget{Calls: 1}
	limited := config(says("x"))
	limited.Limits = tiers.Limits{Wall: 2 * time.Second}
	for name, c := range map[string]struct {
		source string
		cfg    flow.Config
		status ledger.Status
		says   string
	}{
		"done": {run("return None"), config(nil), flow.StatusDone, ""},
		"cut":  {ask, config(cut), ledger.StatusFailed, "the limit of tokens cut the reply"},
		"budget": {ask + "  - name: m\n    uses: llm.call\n" +
			"    with: {prompt: hi}\n", small, ledger.StatusPartial, "budget of 1 calls is used up"},
		"raised": {
			run("raise KeyError('k')"), config(nil), ledger.StatusFailed,
			`w.yaml: node "n": run ended by KeyError: 'k'`,
		},
		"limit": {run("while True: pass"), limited, ledger.StatusFailed, "a limit"},
		"limit of a template": {
			"nodes:\n  - name: n\n    uses: llm.call\n" +
				"    with: {prompt: \"{% set all = range(99999)|list %}{% for i in range(9999) %}" +
				"{% set x = all|sort(reverse=true)|length %}{% endfor %}\"}\n",
			limited, ledger.StatusFailed, "took longer than 2s",
		},
		"not valid": {run("return ("), config(nil), ledger.StatusFailed, "SyntaxError"},
		"no names":  {run("return [1]"), config(nil), ledger.StatusFailed, "give the node an output"},
		"too large": {run("return {'a': 'x' * (9 << 20)}"), config(nil), ledger.StatusFailed, "more than 8388608"},
		"template": {"nodes:\n  - name: n\n    uses: llm.call\n" +
			"    with: {prompt: \"{{ state.a.b.c " +
			"}}\"}\n", config(says("x")), ledger.StatusFailed, "the template ended by an error"},
		"not a text": {"nodes:\n  - name: n\n    uses: llm.call\n" +
			"    with: {prompt: \"{{ [1] }}\"}\n", config(says("x")), ledger.StatusFailed, `"prompt" must be a text`},
		"nothing to do": {run("return 1"), flow.Config{}, ledger.StatusFailed, "cannot run code: set"},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, err := parse(t, c.source).Run(t.Context(), c.cfg, nil)
			if outcome.Status != c.status || !strings.Contains(outcome.Reason, c.says) ||
				(err == nil) != (c.status == flow.StatusDone || c.status == ledger.StatusPartial) {
				t.Errorf("%s: got %s, %q, %v", name, outcome.Status, outcome.Reason, err)
			}
			var ended *flow.NodeError
			if c.status == ledger.StatusFailed && (!errors.As(err, &ended) || ended.Node != "n") {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
	outcome, err := parse(t, ask).Run(canceled, config(failing), nil)
	if outcome.Status != ledger.StatusCanceled || !errors.Is(err, stop) {
		t.Errorf("canceled: %+v, %v", outcome, err)
	}
	outcome, err = parse(t, ask).Run(t.Context(), config(failing), nil)
	if outcome.Status != flow.StatusBroken || err == nil {
		t.Errorf("broken: %+v, %v", outcome, err)
	}
}

func TestCodeSharesNothingButTheState(t *testing.T) {
	file := parse(t, `
nodes:
  - name: a
    run: |
      global leaked
      leaked = 1
      state["x"] = 2
      return {"y": json.dumps([math.pi > 3])}
  - name: b
    run: |
      return {"names": sorted(n for n in ("leaked", "x") if n in globals() or n in state)}
`)
	outcome, err := file.Run(t.Context(), config(nil), nil)
	if err != nil || asJSON(t, outcome.State) != `{"names":[],"y":"[true]"}` {
		t.Errorf("got %s, %v", asJSON(t, outcome.State), err)
	}
}

func TestATracebackShowsTheNodesLines(t *testing.T) {
	_, err := parse(
		t, "nodes:\n  - name: divide\n    run: |\n      a = 0\n      return 1 / a\n",
	).Run(t.Context(), config(nil), nil)
	var ended *flow.ProgramError
	if !errors.As(err, &ended) || ended.Type != "ZeroDivisionError" ||
		!strings.Contains(ended.Traceback, `"<snippet divide>", line 2`) ||
		!strings.Contains(ended.Traceback, "return 1 / a") {
		t.Errorf("got %v\n%s", err, ended.Traceback)
	}
}

// TestTheRouterSeesWhatCodeNeeds checks that the analysers read the code of a node like a snippet,
// and not the program that runs it.
func TestTheRouterSeesWhatCodeNeeds(t *testing.T) {
	cfg := config(nil)
	cfg.Open = shared.Opener(router.Policy{MinIsolation: tiers.IsolationWasm})
	_, err := parse(
		t,
		"nodes:\n  - run: |\n      import subprocess\n      return {\"a\": subprocess.run([\"ls\"]).returncode}\n",
	).Run(t.Context(), cfg, nil)
	if !errors.Is(err, router.ErrNoTier) || !strings.Contains(err.Error(), "subprocess.run") {
		t.Errorf("got %v", err)
	}
}

func TestCodeThatIsNoPythonIsToldByItsOwnLines(t *testing.T) {
	for code, want := range map[string]string{
		"x = 1\nreturn (":   `"<snippet n>", line 2`,
		"  x = 1\nreturn x": `"<snippet n>", line 1`,
		"await x":           `"<snippet n>", line 1`,
	} {
		t.Run(code, func(t *testing.T) {
			r, err := flow.NewRun(config(nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Python(
				t.Context(),
				flow.Code{Source: code, What: "run", Name: "n", Values: map[string]any{"state": 1}},
			)
			var ended *flow.ProgramError
			if !errors.As(err, &ended) || !strings.Contains(ended.Type, "Error") ||
				!strings.Contains(ended.Traceback, want) {
				t.Errorf("%q: got %v, want %s", code, err, want)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOtherActionsCanBeAdded(t *testing.T) {
	skip.WithoutJail(t)
	add := flow.Action{
		Name: "math.add", Params: []flow.Param{
			{Name: "a", Type: flow.NumberType, Required: true, Doc: "the first"},
			{Name: "b", Type: flow.WholeType, Default: json.Number("1"), Doc: "the second"},
		},
		Do: func(_ context.Context, r *flow.Run, with map[string]any) (any, error) {
			a, err := with["a"].(json.Number).Float64()
			if err != nil {
				return nil, err
			}
			b, err := with["b"].(json.Number).Float64()
			return map[string]any{"sum": a + b}, errors.Join(
				err, r.Set(map[string]any{"added": true}),
			)
		},
	}
	cfg := config(nil)
	var events []string
	cfg.Progress = func(e ledger.Event) { events = append(events, fmt.Sprint(e.Kind, " ", e.Node, " ", e.Text)) }
	outcome, err := parse(
		t, "nodes:\n  - name: sum\n    uses: math.add\n    with: {a: \"{{ state.n * 2 }}\"}\n", add,
	).Run(t.Context(), cfg, map[string]any{"n": 3})
	if err != nil || asJSON(t, outcome.State) != `{"added":true,"n":3,"sum":7}` {
		t.Errorf("got %+v, %v", outcome, err)
	}
	got := fmt.Sprint(events)
	if got != `[run_started 0 w.yaml loop_started 0.1 sum: math.add loop_ended 0.1 {"sum":7} run_ended 0 {"sum":7}]` {
		t.Errorf("told %s", got)
	}
	if _, err := flow.Parse("w.yaml", nil, add, add); err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Error("an action was added twice")
	}
	r, err := flow.NewRun(cfg, map[string]any{"n": 1}, add)
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Act(t.Context(), "math.add", map[string]any{"a": 0.5, "b": 2})
	if err != nil ||
		asJSON(t, v) != `{"sum":2.5}` {
		t.Errorf("got %v, %v", v, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkRender measures rendering a node's parameters in the jail, whose start takes nearly all
// of the time.
func BenchmarkRender(b *testing.B) {
	r, err := flow.NewRun(flow.Config{}, map[string]any{"name": "Ann"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_, err := r.Render(b.Context(), map[string]any{"prompt": "Dear {{ state.name }}"})
		if err != nil {
			b.Fatal(err)
		}
	}
}
