package correct_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/workflow/internal/correct"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

// echo is an action for tests: its result is its parameters, and the part of the state that the
// loop put there.
var echo = flow.Action{
	Name: "echo", Open: true,
	Do: func(_ context.Context, r *flow.Run, with map[string]any) (any, error) {
		rendered, err := r.Render(context.Background(), with)
		if err != nil {
			return nil, err
		}
		seen := maps.Clone(rendered.(map[string]any))
		for name, value := range r.State {
			if strings.HasPrefix(name, "reflection_") {
				seen[name] = value
			}
		}
		return seen, nil
	},
}

// loopOf returns a file with one loop over a schema that requires a and b.
func loopOf(more string) string {
	return `
nodes:
  - name: loop
    uses: reflection.loop
    with:
      generator: {action: llm.call, prompt: "make {{ state.reflection_iteration }}"}
      evaluator: {type: schema, schema: {type: object, required: [a, b], properties: {a: {type: ` +
		`integer}, b: {type: boolean}}}}
` + more + `
    output: out
`
}

const corrector = `      corrector:
        action: llm.call
        prompt: |
          fix {{ state.reflection_output | tojson }}:{% for e in state.reflection_errors %} {{ ` +
	`e.path }} {{ e.message }};{% endfor %}
`

// TestActionsTable checks that the actions have their names, each with a description.
//
// Source 004, repl/workflow/internal/correct/actions.go: Actions: reflection.loop,
// reflection.evaluate, reflection.correct.
func TestActionsTable(t *testing.T) {
	var names []string
	for _, action := range correct.Actions() {
		names = append(names, action.Name)
		if action.Doc == "" {
			t.Errorf("%s has no description", action.Name)
		}
	}
	got := strings.Join(names, " ")
	if got != "reflection.loop reflection.evaluate reflection.correct" {
		t.Errorf("the actions are %s", got)
	}
}

// TestParametersOfLoop checks the parameters of reflection.loop and their defaults.
//
// Source 004, repl/workflow/internal/correct/config.go: reflection.loop: generator and
// evaluator are required; max_iterations is 3 and on_failure "return_best" by default.
//
// Source 004, repl/workflow/internal/correct/config.go: The generator uses an action or inline
// Python code.
func TestParametersOfLoop(t *testing.T) {
	skip.WithoutJail(t)
	t.Run("generator and evaluator are required", func(t *testing.T) {
		cfg, _ := config(t, "{}")
		_, err := run(
			t, "nodes:\n  - uses: reflection.loop\n    with: {max_iterations: 1}\n", cfg, "{}",
		)
		if err == nil || !strings.Contains(err.Error(), `"generator" is missing`) ||
			!strings.Contains(err.Error(), `"evaluator" is missing`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("without a corrector the generator makes every output", func(t *testing.T) {
		cfg, models := config(t, `{}`, `{"a": 1, "b": true}`)
		outcome, err := run(t, loopOf(""), cfg, "{}")
		if err != nil || models.prompt(0) != "make 1" || models.prompt(1) != "make 2" ||
			len(models.requests) != 2 {
			t.Errorf("got %+v, %v", outcome, err)
		}
	})
	t.Run("a corrector gets the output and its errors", func(t *testing.T) {
		cfg, models := config(t, `{"a": "x"}`, `{"a": 1, "b": true}`)
		if _, err := run(t, loopOf(corrector), cfg, "{}"); err != nil {
			t.Fatal(err)
		}
		want := `fix {"a":"x"}: $.a must be integer, is string; $.b is missing;`
		if got := models.prompt(1); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("max_iterations is 3 by default", func(t *testing.T) {
		cfg, models := config(t, `{}`)
		_, err := run(t, loopOf(""), cfg, "{}")
		if err != nil || len(models.requests) != correct.DefaultIterations {
			t.Errorf("asked %d times, %v", len(models.requests), err)
		}
	})
	t.Run("max_iterations", func(t *testing.T) {
		cfg, models := config(t, `{}`)
		_, err := run(t, loopOf("      max_iterations: 5\n"), cfg, "{}")
		if err != nil || len(models.requests) != 5 {
			t.Errorf("asked %d times, %v", len(models.requests), err)
		}
		for _, wrong := range []string{"0", "101", "-1", "many", "1.5"} {
			t.Run(wrong, func(t *testing.T) {
				_, err := run(t, loopOf("      max_iterations: "+wrong+"\n"), cfg, "{}")
				if err == nil ||
					!strings.Contains(err.Error(), `"max_iterations" must be a whole number from 1 to 100`) {
					t.Errorf("%s: %v", wrong, err)
				}
			})
		}
	})
	t.Run("on_failure is return_best by default", func(t *testing.T) {
		cfg, _ := config(t, `{"a": 1}`, `{}`)
		outcome, err := run(t, loopOf(""), cfg, "{}")
		if err != nil || asJSON(t, outcome.State["reflection_output"]) != `{"a":1}` {
			t.Errorf("got %+v, %v", outcome, err)
		}
		_, err = run(t, loopOf("      on_failure: return_bst\n"), cfg, "{}")
		if err == nil || !strings.Contains(err.Error(), `"on_failure" must be one of`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("generator and corrector can be code", func(t *testing.T) {
		cfg, _ := config(t, "")
		outcome, err := run(t, `
nodes:
  - uses: reflection.loop
    with:
      generator:
        run: |
          import json
          return json.dumps({"n": state["n"]})
      evaluator: {type: schema, schema: {properties: {n: {maximum: 1}}, type: object}}
      corrector:
        run: |
          return {"n": output["n"] - 1, "why": errors[0]["path"], "i": state["reflection_iteration"]}
`, cfg, `{"n": 3}`)
		if err != nil ||
			asJSON(t, outcome.State["reflection_output"]) != `{"i":3,"n":1,"why":"$.n"}` {
			t.Errorf("got %s, %v", asJSON(t, outcome.State), err)
		}
	})
	t.Run("a step is an action or code", func(t *testing.T) {
		cfg, _ := config(t, "")
		for step, want := range map[string]string{
			"{}":                           `"generator" needs exactly one of "action"`,
			"{action: echo, run: x}":       `"generator" needs exactly one of "action"`,
			"{run: x, prompt: y}":          `unknown key "prompt" of generator beside run`,
			"{action: llm.call}":           `"prompt" is missing`,
			"{action: llm.cal, prompt: x}": "did you mean llm.call?",
			"x":                            `"generator" must be an object`,
		} {
			t.Run(step, func(t *testing.T) {
				_, err := run(
					t,
					"nodes:\n  - uses: reflection.loop\n"+
						"    with: {evaluator: {type: custom, run: x}, generator: "+step+"}\n",
					cfg, "{}",
				)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v", step, err)
				}
			})
		}
	})
}

// TestOnFailureStrategies checks the result of each strategy if no output is valid.
//
// Source 004, repl/workflow/internal/correct/loop.go: return_best returns the attempt with the
// highest score, return_last the final attempt, raise raises ReflectionFailedError with
// history.
func TestOnFailureStrategies(t *testing.T) {
	skip.WithoutJail(t)
	replies := []string{`{}`, `{"a": 1}`, `{"b": "?"}`}
	for strategy, want := range map[string]string{
		correct.ReturnBest: `{"a":1}`,
		correct.ReturnLast: `{"b":"?"}`,
	} {
		t.Run(fmt.Sprintf("%.60s", strategy), func(t *testing.T) {
			cfg, _ := config(t, replies...)
			outcome, err := run(t, loopOf("      on_failure: "+strategy+"\n"), cfg, "{}")
			if err != nil || asJSON(t, outcome.State["reflection_output"]) != want ||
				asJSON(t, outcome.State["reflection_best"]) != `{"a":1}` {
				t.Errorf("%s: got %s, %v", strategy, asJSON(t, outcome.State), err)
			}
		})
	}
	cfg, _ := config(t, replies...)
	outcome, err := run(t, loopOf("      on_failure: raise\n"), cfg, "{}")
	var failed *correct.FailedError
	if !errors.As(err, &failed) || outcome.Status != ledger.StatusFailed {
		t.Fatalf("got %+v, %v", outcome, err)
	}
	if len(failed.History) != 3 || asJSON(t, failed.Best.Output) != `{"a":1}` {
		t.Errorf("got %+v", failed)
	}
}

// TestIterationsAreReportedAndRecorded checks that each attempt is a turn of its node.
//
// Source 004, repl/workflow/internal/correct/loop.go: Full iteration history tracking.
func TestIterationsAreReportedAndRecorded(t *testing.T) {
	cfg, _ := config(t, `{"b": 1}`, `{"a": 1}`)
	cfg.Trace = filepath.Join(t.TempDir(), "trace")
	var told []string
	cfg.Progress = func(e ledger.Event) {
		told = append(
			told, strings.TrimSpace(fmt.Sprint(e.Node, " ", e.Turn, " ", e.Kind, " ", e.Status)),
		)
	}
	_, err := run(t, `
nodes:
  - name: make
    uses: reflection.loop
    with:
      generator: {action: llm.call, prompt: x}
      evaluator: {type: schema, schema: {type: object, required: [a]}}
`, cfg, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0 0 run_started", "0.1 0 loop_started", "0.1 1 turn_started", "0.1 1 reply stop",
		"0.1 1 verdict the output is not valid, score 0.67, errors: 1, such as $.a: is missing",
		"0.1 2 turn_started", "0.1 2 reply stop", "0.1 2 verdict the output is valid, score 1.00",
		"0.1 2 answer", "0.1 0 loop_ended done", "0 0 run_ended done",
	}
	if strings.Join(told, "\n") != strings.Join(want, "\n") {
		t.Errorf("told were\n%s", strings.Join(told, "\n"))
	}
	data, err := os.ReadFile(filepath.Join(cfg.Trace, "sub_0001", trajectory.File))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], `"iteration":1`) ||
		!strings.Contains(lines[1], `"response":"{\"b\": 1}"`) ||
		!strings.Contains(lines[2], `"iteration":2`) ||
		!strings.Contains(lines[2], `"reflection_iteration":2`) {
		t.Errorf("the record is\n%s", data)
	}
}

// TestFailedErrorHasTheHistory checks the table of an entry's fields.
//
// Source 004, repl/workflow/internal/correct/loop.go: Each history entry has iteration,
// output, score, valid, errors.
func TestFailedErrorHasTheHistory(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, `{"a": 1}`)
	outcome, err := run(t, loopOf("      on_failure: raise\n      max_iterations: 2\n"), cfg, "{}")
	var failed *correct.FailedError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
	a := failed.History[1]
	if a.Iteration != 2 || a.Valid || a.Score != 0.6667 || asJSON(t, a.Output) != `{"a":1}` ||
		len(a.Errors) != 1 {
		t.Errorf("got %+v", a)
	}
	want := "no valid output in 2 iterations; the best score is 0.67; at last $.b: is " +
		"missing"
	if failed.Error() != want {
		t.Errorf("it says %s", failed.Error())
	}
	entries, _ := outcome.State["reflection_history"].([]any)
	const entry = `{"errors":[{"message":"is missing","path":"$.b","suggestion":"Add $.b."}],` +
		`"iteration":1,"output":{"a":1},"score":0.6667,"valid":false}`
	if len(entries) != 2 || asJSON(t, entries[0]) != entry {
		t.Errorf("the state has %s", asJSON(t, entries))
	}
}

// TestStateVariables checks the state in the second iteration, while the corrector works.
//
// Source 004, repl/workflow/internal/correct/loop.go: State variables: reflection_iteration,
// reflection_output, reflection_errors, reflection_history, reflection_best,
// reflection_best_score.
func TestStateVariables(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, `{"a": 1}`)
	outcome, err := run(t, loopOf("      corrector: {action: echo, b: true, a: 2}\n"), cfg, "{}")
	if err != nil {
		t.Fatal(err)
	}
	seen, _ := outcome.State["reflection_output"].(map[string]any)
	for name, want := range map[string]string{
		"reflection_iteration": `2`,
		"reflection_output":    `{"a":1}`,
		"reflection_errors":    `[{"message":"is missing","path":"$.b","suggestion":"Add $.b."}]`,
		"reflection_history": `[{"errors":[{"message":"is missing","path":"$.b",` +
			`"suggestion":"Add $.b."}],"iteration":1,"output":{"a":1},"score":0.6667,"valid":false}]`,
		"reflection_best":       `{"a":1}`,
		"reflection_best_score": `0.6667`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := asJSON(t, seen[name]); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		})
	}
}

// TestReturnValueOnSuccess checks the members of a successful result.
//
// Source 004, repl/workflow/internal/correct/loop.go: On success: success, valid, and the
// reflection_ values, plus all keys from the output if it is a dict.
func TestReturnValueOnSuccess(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, `{"a": 1}`, `{"a": "2", "b": "true", "valid": "mine"}`)
	outcome, err := run(t, loopOf(corrector), cfg, "{}")
	if err != nil {
		t.Fatal(err)
	}
	out, _ := outcome.State["out"].(map[string]any)
	for name, want := range map[string]string{
		"success": `true`, "valid": `true`, "reflection_iteration": `2`,
		"reflection_output": `{"a":2,"b":true,"valid":"mine"}`,
		"reflection_errors": `[]`, "reflection_best": `{"a":2,"b":true,"valid":"mine"}`,
		"reflection_best_score": `1.0`, "a": `2`, "b": `true`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := asJSON(t, out[name]); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
			if got := asJSON(t, outcome.State[name]); got != want {
				t.Errorf("in the state, %s is %s, want %s", name, got, want)
			}
		})
	}
	if history, _ := out["reflection_history"].([]any); len(history) != 2 || len(out) != 10 {
		t.Errorf("got %s", asJSON(t, out))
	}
}

// TestReturnValueOnFailure checks the members of a result without a valid output.
//
// Source 004, repl/workflow/internal/correct/loop.go: On failure: success and valid are false,
// exhausted is true.
func TestReturnValueOnFailure(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, `{}`, `{"a": 1}`, `no`)
	outcome, err := run(t, loopOf("      on_failure: return_last\n"), cfg, "{}")
	if err != nil {
		t.Fatal(err)
	}
	out, _ := outcome.State["out"].(map[string]any)
	for name, want := range map[string]string{
		"success": `false`, "valid": `false`, "exhausted": `true`,
		"reflection_iteration": `3`, "reflection_output": `"no"`,
		"reflection_best": `{"a":1}`, "reflection_best_score": `0.6667`,
		"reflection_errors": `[{"message":"the reply has no JSON value in it: answer with the ` +
			`value alone","path":"$","suggestion":"Return the JSON value alone, without any other text."}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := asJSON(t, out[name]); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		})
	}
	if history, _ := out["reflection_history"].([]any); len(history) != 3 {
		t.Errorf("the history is %s", asJSON(t, out["reflection_history"]))
	}
	names := slices.Sorted(maps.Keys(out))
	want := []string{
		"exhausted", "reflection_best", "reflection_best_score", "reflection_errors",
		"reflection_history", "reflection_iteration", "reflection_output", "success", "valid",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got %v", names)
	}
}

// TestCodeThatFailsMakesAnAttemptThatFailed checks code that fails in a generator.
//
// Source 004, repl/workflow/internal/correct/loop.go: Code of a generator that raises is an
// attempt that failed.
func TestCodeThatFailsMakesAnAttemptThatFailed(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, "")
	outcome, err := run(t, `
nodes:
  - uses: reflection.loop
    with:
      generator: {run: "return {'n': state['reflection_iteration']} if state['reflection_iteration'] != 2 else 1 / 0"}
      evaluator: {type: schema, schema: {properties: {n: {minimum: 3}}, type: object}}
`, cfg, "{}")
	if err != nil || asJSON(t, outcome.State["reflection_output"]) != `{"n":3}` {
		t.Fatalf("got %s, %v", asJSON(t, outcome.State), err)
	}
	history, _ := outcome.State["reflection_history"].([]any)
	got := asJSON(t, history[1])
	if !strings.Contains(got, `"output":null`) ||
		!strings.Contains(got, "the generator ended by ZeroDivisionError") {
		t.Errorf("got %s", got)
	}
}

func TestALoopFromGo(t *testing.T) {
	cfg, _ := config(t, "")
	r, err := flow.NewRun(cfg, map[string]any{"n": 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	outcome, err := correct.Loop(t.Context(), r, correct.Config{
		Generator: correct.Step{Run: "return state['n']"},
		Evaluator: correct.Evaluator{Type: correct.CustomEvaluator, Run: "return output > 2"},
		Corrector: &correct.Step{Run: "return output + 1"},
	})
	if err != nil || !outcome.Success || asJSON(t, outcome.Chosen.Output) != "3" ||
		len(outcome.History) != 3 {
		t.Errorf("got %+v, %v", outcome, err)
	}
	for _, wrong := range []correct.Config{
		{},
		{Generator: correct.Step{Run: "x"}, Iterations: -1},
		{Generator: correct.Step{Run: "x"}, OnFailure: "explode"},
		{Generator: correct.Step{Run: "return 1"}, Evaluator: correct.Evaluator{Type: "guess"}},
		{Generator: correct.Step{Run: "return 1"}, Evaluator: correct.Evaluator{Type: correct.SchemaEvaluator}},
		{
			Generator: correct.Step{Run: "return 1"},
			Evaluator: correct.Evaluator{Type: correct.CustomEvaluator, Language: "cobol"},
		},
	} {
		if _, err := correct.Loop(t.Context(), r, wrong); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}
