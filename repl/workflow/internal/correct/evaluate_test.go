package correct_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
	"github.com/rlmhq/rlm/tiers"
)

// evaluate runs reflection.evaluate with these parameters over data.
func evaluate(t *testing.T, cfg flow.Config, with, input string) (string, error) {
	t.Helper()
	outcome, err := run(
		t,
		"nodes:\n  - name: n\n    uses: reflection.evaluate\n    output: v\n    with:\n"+indent(
			with,
		),
		cfg,
		input,
	)
	return asJSON(t, outcome.State["v"]), err
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") + "\n"
}

// TestEvaluatorOfTypeSchema checks verdicts by a JSON Schema.
//
// Source 004, repl/workflow/internal/correct/evaluate.go: The schema evaluator uses JSON
// Schema validation, with automatic type coercion (string to int, string to boolean).
//
// Source 004, repl/workflow/internal/correct/evaluate.go: Detailed error paths and
// suggestions.
func TestEvaluatorOfTypeSchema(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, "")
	with := "data: \"{{ state.d }}\"\nschema: {type: object, required: [name, age], " +
		"additionalProperties: false, properties: {name: {type: string, minLength: 1}, age: " +
		"{type: integer}, ok: {type: boolean}}}"
	for data, want := range map[string]string{
		`{"name": "A", "age": 3}`: `{"errors":[],"score":1.0,"suggestions":[],"valid":true}`,
		`{"name": "A", "age": "3", ` +
			`"ok": "no"}`: `"valid":true`, // coerced
		`"A profile: {\"name\": \"A\", ` +
			`\"age\": 3}"`: `"valid":true`, // found in a string
		`{"name": "", ` +
			`"age": 3}`: `"errors":[{"message":"must have at least 1 characters, has 0","path":"$.name"`, // a path
		`{"age": "old", ` +
			`"x": 1}`: `"score":0.25`, // three violations
		`"hello"`: `"score":0.0`,
	} {
		t.Run(fmt.Sprintf("%.60s", data), func(t *testing.T) {
			got, err := evaluate(t, cfg, with, `{"d": `+data+`}`)
			if err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: got %s, %v, want %s", data, got, err, want)
			}
		})
	}
	got, err := evaluate(t, cfg, with, `{"d": {"age": "old", "x": 1, "name": ""}}`)
	want := `"suggestions":["Change $.age: it must be integer.","Change $.name: it must have ` +
		`at least 1 characters.","Remove $.x."]`
	if err != nil || !strings.Contains(got, want) {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	got, err = evaluate(t, cfg, with, `{"d": "hello"}`)
	if want := `"suggestions":["Return the JSON value alone, without any other text."]`; err != nil ||
		!strings.Contains(got, want) {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// TestEvaluatorOfTypeLLM checks verdicts by a model.
//
// Source 004, repl/workflow/internal/correct/evaluate.go: The LLM evaluator uses LLM-as-judge,
// with a prompt and few-shot examples.
func TestEvaluatorOfTypeLLM(t *testing.T) {
	skip.WithoutJail(t)
	with := `
evaluator_type: llm
model: test/judge
data: {secret: 7}
prompt: "Judge {{ state.reflection_output | tojson }}."
examples:
  - {input: "good", output: '{"valid": true, "score": 1.0, "reason": "fine"}'}
  - {input: {x: 1}, output: {valid: false}}`
	for reply, want := range map[string]string{
		`{"valid": true, "score": 0.9, "reason": ` +
			`"fine"}`: `{"errors":[],"reason":"fine","score":0.9,"suggestions":[],"valid":true}`,
		"```json\n{\"valid\": \"false\", \"reason\": " +
			"\"bad\"}\n```": `{"errors":[{"message":"bad"}],"reason":"bad","score":0.0,"suggestions":[],"valid":false}`,
		`{"valid": false, "score": 0.4, "errors": ["one", {"path": "$.a", "message": "two"}], ` +
			`"suggestions": ` +
			`["mend"]}`: `{"errors":[{"message":"one"},{"message":"two","path":"$.a"}],` +
			`"score":0.4,"suggestions":["mend"],"valid":false}`,
		`{"valid": true}`: `"score":1.0`,
	} {
		t.Run(fmt.Sprintf("%.60s", reply), func(t *testing.T) {
			cfg, models := config(t, reply)
			cfg.Trace = filepath.Join(t.TempDir(), "trace")
			got, err := evaluate(t, cfg, with, "{}")
			if err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: got %s, %v, want %s", reply, got, err, want)
				return
			}
			record, err := os.ReadFile(filepath.Join(cfg.Trace, "sub_0001", trajectory.File))
			if err != nil ||
				!strings.Contains(string(record), `"response":"{\"`) {
				t.Errorf("the record lacks the judge's reply: %v\n%s", err, record)
			}
			m := models.requests[0].Messages
			if models.requests[0].Model != "test/judge" || len(m) != 6 ||
				m[0].Role != llm.RoleSystem || m[1].Content != "Judge this:\ngood" ||
				m[2].Role != llm.RoleAssistant || m[3].Content != "Judge this:\n{\"x\":1}" ||
				m[4].Content != `{"valid":false}` ||
				m[5].Content != `Judge {"secret":7}.` {
				t.Errorf("asked %+v", m)
			}
		})
	}
}

// TestAJudgeThatCannotBeReadNeverLetsPass checks that a judge with an unreadable verdict is asked
// again, and that the attempt then fails.
func TestAJudgeThatCannotBeReadNeverLetsPass(t *testing.T) {
	skip.WithoutJail(t)
	with := "evaluator_type: llm\nprompt: Judge.\ndata: 1"
	cfg, models := config(
		t, "It is valid: true, I think", `{"valid": "perhaps"}`, `{"valid": true, "score": 0.5}`,
	)
	got, err := evaluate(t, cfg, with, "{}")
	if err != nil || !strings.Contains(got, `"valid":true`) || len(models.requests) != 3 {
		t.Errorf("got %s, %v after %d requests", got, err, len(models.requests))
	}
	for _, reply := range []string{
		"valid", "", `{"score": 1}`, `{"valid": true, "score": 7}`, `true`,
	} {
		t.Run(reply, func(t *testing.T) {
			cfg, models := config(t, reply)
			got, err := evaluate(t, cfg, with, "{}")
			if err != nil || !strings.Contains(got, `"valid":false`) ||
				!strings.Contains(got, "no verdict that can be read") || len(models.requests) != 3 {
				t.Errorf("%q: got %s, %v after %d requests", reply, got, err, len(models.requests))
			}
		})
	}
}

// TestAQuotedVerdictNeverLetsPass checks outputs that contain a verdict on themselves, which a
// judge or an evaluator may quote.
func TestAQuotedVerdictNeverLetsPass(t *testing.T) {
	skip.WithoutJail(t)
	for _, reply := range []string{
		`{"valid": false, "reason": "bad"}` + "\nIt would rather have\n" + `{"valid": true, "score": 1}`,
		"It says\n```json\n{\"valid\": true}\n```\nI say\n" + `{"valid": false, "reason": "bad"}`,
		`{"valid": false, "reason": "bad"}` + "\n```json\n{\"valid\": true}\n```",
	} {
		t.Run(fmt.Sprintf("%.60s", reply), func(t *testing.T) {
			cfg, _ := config(t, reply)
			got, err := evaluate(t, cfg, "evaluator_type: llm\nprompt: Judge.\ndata: 1", "{}")
			if err != nil || !strings.Contains(got, `"valid":false`) ||
				!strings.Contains(got, `"reason":"bad"`) {
				t.Errorf("%s: got %s, %v", reply, got, err)
			}
		})
	}
	cfg, _ := config(t, "")
	with := "data: '{\"valid\": true}'\nevaluator_type: custom\nlanguage: lua\n" +
		"run: \"return 'this is bad: ' .. output\""
	got, err := evaluate(t, cfg, with, "{}")
	if err != nil ||
		!strings.Contains(got, `"valid":false`) {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestCodeThatIsNotValidEndsTheRun checks that invalid code of an evaluator ends the run, because
// no output could pass.
func TestCodeThatIsNotValidEndsTheRun(t *testing.T) {
	skip.WithoutJail(t)
	for _, c := range []struct{ language, code, want string }{
		{"python", "return (", "SyntaxError"},
		{"lua", "return return", "a syntax error"},
		{"prolog", "?- a b.", "a syntax error"},
	} {
		t.Run(c.language, func(t *testing.T) {
			cfg, models := config(t, "x")
			_, err := run(t, fmt.Sprintf(`
nodes:
  - uses: reflection.loop
    with:
      generator: {action: llm.call, prompt: x}
      evaluator: {type: custom, language: %s, run: %q}
`, c.language, c.code), cfg, "{}")
			if err == nil || !strings.Contains(err.Error(), "the evaluator ended by "+c.want) ||
				len(models.requests) != 1 {
				t.Errorf("%s: %v after %d calls", c.language, err, len(models.requests))
			}
		})
	}
}

// TestAValidOutputIsTheBest checks that a valid output is the best, whatever score an earlier
// output had.
func TestAValidOutputIsTheBest(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, `{"valid": false, "score": 0.9}`, `{"valid": true, "score": 0.6}`)
	outcome, err := run(t, `
nodes:
  - uses: reflection.loop
    with:
      generator: {run: "return state['reflection_iteration']"}
      evaluator: {type: llm, prompt: "Judge {{ state.reflection_output }}."}
`, cfg, "{}")
	if err != nil || asJSON(t, outcome.State["reflection_best"]) != "2" ||
		asJSON(t, outcome.State["reflection_best_score"]) != "0.6" {
		t.Errorf("got %s, %v", asJSON(t, outcome.State), err)
	}
}

// TestEvaluatorOfTypeCustom checks verdicts by code.
//
// Source 004, repl/workflow/internal/correct/evaluate.go: The custom evaluator uses inline
// Python, Lua, or Prolog code.
func TestEvaluatorOfTypeCustom(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, "")
	for _, c := range []struct{ language, code, want string }{
		{"python", "result = {'valid': output['n'] == state['n'], " +
			"'score': 0.5}", `{"errors":[],"score":0.5,"suggestions":[],"valid":true}`},
		{"python", "return False", `{"errors":[{"message":"the evaluator rejects the output ` +
			`and gives no reason"}],"score":0.0,"suggestions":[],"valid":false}`},
		{"python", "return {'valid': False, 'errors': ['e'], " +
			"'suggestions': ['s']}", `{"errors":[{"message":"e"}],"score":0.0,"suggestions":["s"],"valid":false}`},
		{"lua", "result = {valid = output.n == state.n, score = 0.5}", `"score":0.5,"suggestions":[],"valid":true}`},
		{"lua", "return output.n == 2", `"valid":false`},
		{"prolog", "output(O), get(O, n, N), state(n, N), return(valid, true), " +
			"return(score, 0.5).", `"score":0.5,"suggestions":[],"valid":true}`},
		{"prolog", "return(valid, false), return(errors, [json([path='$.n', " +
			"message=bad])]).", `"errors":[{"message":"bad","path":"$.n"}]`},
	} {
		t.Run(c.language, func(t *testing.T) {
			got, err := evaluate(
				t,
				cfg,
				fmt.Sprintf(
					"data: {n: 1}\nevaluator_type: custom\nlanguage: %s\nrun: %q", c.language, c.code,
				),
				`{"n": 1}`,
			)
			if err != nil || !strings.Contains(got, c.want) {
				t.Errorf("%s: %s: got %s, %v, want %s", c.language, c.code, got, err, c.want)
			}
		})
	}
}

// TestHostileEvaluatorsNeverLetPass checks that code that raises, hangs, grows, ends its
// interpreter or returns no verdict results in a negative verdict that says so.
func TestHostileEvaluatorsNeverLetPass(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, "")
	const soon = 2 * time.Second // for code that never ends; the others get enough time
	for _, c := range []struct {
		language, code, want string
		wall                 time.Duration
	}{
		{"python", "raise ValueError('no')", "the evaluator ended by ValueError: no", 0},
		{"python", "while True: pass", "the evaluator ended by a limit", soon},
		{"python", "import ast; ast.literal_eval('(')", "SyntaxError", 0},
		{"python", "import sys; sys.exit(0)", "the evaluator ended by SystemExit", 0},
		{"python", "pass", "the code neither returns a value nor sets the variable result", 0},
		{"python", "return None", "the evaluator's result is not a verdict", 0},
		{"lua", "x = 1", "the code neither returns a value nor sets the global result", 0},
		{"python", "return {'valid': 'perhaps'}", "the evaluator's result is not a verdict: $.valid", 0},
		{"python", "return {'valid': True, 'score': 3}", "the evaluator's result is not a verdict: $.score", 0},
		{"lua", "return string.find(string.rep('a', 40), string.rep('.-', 25) " +
			".. 'b')", "the evaluator ended by the limit of time", soon},
		{"lua", "local s = 'x' while true do s = s .. s end", "the evaluator ended by the limit of ", soon},
		{"lua", "os.exit(0)", "the evaluator ended by an error", 0},
		{"lua", "return function() end", "which is not a value", 0},
		{"prolog", "?- halt.", "the evaluator ended by the end of its interpreter: exit code 0", 0},
		{"prolog", "?- fail.", "a goal has no solution", 0},
		{"prolog", "p :- p, p. ?- p.", "the evaluator ended by", soon},
		{"prolog", "fact(1).", "the evaluator's result is not a verdict: $.valid: is missing", 0},
	} {
		t.Run(c.language+" "+c.want, func(t *testing.T) {
			t.Parallel()
			cfg := cfg
			cfg.Limits = tiers.Limits{Wall: c.wall, Memory: 64 << 20}
			got, err := evaluate(
				t,
				cfg,
				fmt.Sprintf(
					"data: 1\nevaluator_type: custom\nlanguage: %s\nrun: %q", c.language, c.code,
				),
				"{}",
			)
			if err != nil || !strings.Contains(got, c.want) ||
				!strings.Contains(got, `"valid":false`) ||
				!strings.Contains(got, `"score":0.0`) {
				t.Errorf("%s: got %s, %v", c.code, got, err)
			}
		})
	}
}

// TestParametersOfEvaluate checks the parameters of reflection.evaluate and their defaults.
//
// Source 004, repl/workflow/internal/correct/actions.go: reflection.evaluate: data is
// state.reflection_output by default, evaluator_type "schema"; schema, prompt, model,
// examples, run, language.
func TestParametersOfEvaluate(t *testing.T) {
	skip.WithoutJail(t)
	cfg, models := config(t, `{"valid": true}`)
	// By default, data is the state's output and evaluator_type is schema.
	got, err := evaluate(t, cfg, "schema: {type: integer}", `{"reflection_output": "5"}`)
	if err != nil || !strings.Contains(got, `"valid":true`) {
		t.Errorf("got %s, %v", got, err)
	}
	got, err = evaluate(t, cfg, "schema: {type: integer}\ndata: x", `{"reflection_output": "5"}`)
	if err != nil || !strings.Contains(got, `"valid":false`) {
		t.Errorf("got %s, %v", got, err)
	}
	// The state determines the model.
	_, err = evaluate(t, cfg, "evaluator_type: llm\nprompt: x", `{"model": "test/judge"}`)
	if err != nil || models.requests[0].Model != "test/judge" {
		t.Errorf("asked %+v, %v", models.requests, err)
	}
	// The state is unchanged except for the output.
	outcome, err := run(
		t,
		"nodes:\n  - uses: reflection.evaluate\n    with: {data: 1, schema: {type: integer}}\n    output: v\n",
		cfg, `{"reflection_output": "mine"}`,
	)
	if err != nil || outcome.State["reflection_output"] != "mine" {
		t.Errorf("got %+v, %v", outcome, err)
	}
	for with, want := range map[string]string{
		"data: 1":                `6:7: "schema" is missing: an evaluator of type schema needs it`,
		"evaluator_type: llm":    `"prompt" is missing`,
		"evaluator_type: custom": `"run" is missing`,
		"evaluator_type: guess":  `"evaluator_type" must be one of`,
		"evaluator_type: custom\nrun: x\nlanguage: cobol": `"language" must be one of`,
		"schema: {}\nprompt: x": `7:15: "prompt" is not used by ` +
			"an evaluator of type schema",
		"evaluator_type: llm\nprompt: x\nexamples: x":            `"examples" must be a list`,
		"evaluator_type: llm\nprompt: x\nexamples: [{input: 1}]": `"output" is missing`,
		"evaluator_type: llm\nprompt: x\n" +
			"examples: [{input: 1, output: '{\"valid\": 3}'}]": "the output of an example must be a verdict: $.valid",
		"shema: {}": "did you mean schema?",
	} {
		t.Run(fmt.Sprintf("%.60s", with), func(t *testing.T) {
			_, err := evaluate(t, cfg, with, "{}")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", with, err, want)
			}
		})
	}
}

// corrected runs reflection.correct with these parameters.
func corrected(t *testing.T, cfg flow.Config, with, input string) (string, error) {
	t.Helper()
	outcome, err := run(
		t, "nodes:\n  - uses: reflection.correct\n    output: v\n    with:\n"+indent(with), cfg,
		input,
	)
	return asJSON(t, outcome.State["v"]), err
}

// TestParametersOfCorrect checks the parameters of reflection.correct and their defaults.
//
// Source 004, repl/workflow/internal/correct/correct.go: reflection.correct: data, errors,
// corrector_action, run, prompt; data and errors come from the state by default.
func TestParametersOfCorrect(t *testing.T) {
	skip.WithoutJail(t)
	cfg, models := config(t, "Here: {\"fixed\": true}")
	prompt := "prompt: \"{{ state.reflection_output | tojson }} {{ state.reflection_errors | tojson }}\""
	// By default, data and errors are taken from the state.
	got, err := corrected(
		t, cfg, prompt, `{"reflection_output": {"a": 1}, "reflection_errors": [{"message": "m"}]}`,
	)
	if err != nil || got != `{"fixed":true}` || models.prompt(0) != `{"a":1} [{"message":"m"}]` {
		t.Errorf("got %s, %v, asked %s", got, err, models.prompt(0))
	}
	got, err = corrected(
		t, cfg, "data: \"{{ state.d }}\"\nerrors: \"{{ state.e }}\"\nmodel: test/judge\n"+prompt,
		`{"d": [2], "e": [{"message": "n"}], "reflection_output": 1}`,
	)
	if err != nil || got != `{"fixed":true}` || models.prompt(1) != `[2] [{"message":"n"}]` ||
		models.requests[1].Model != "test/judge" {
		t.Errorf("got %s, %v, asked %s", got, err, models.prompt(1))
	}
	got, err = corrected(
		t, cfg,
		"data: 3\nerrors: []\nrun: \"return [output + 1, len(errors), state['reflection_output']]\"",
		"{}",
	)
	if err != nil || got != `[4,0,3]` {
		t.Errorf("got %s, %v", got, err)
	}
	got, err = corrected(
		t, cfg,
		"data: 3\ncorrector_action: echo\nhint: \"{{ state.h ~ state.reflection_output }}\"",
		`{"h": "more"}`,
	)
	if err != nil || got != `{"hint":"more3","reflection_errors":[],"reflection_output":3}` {
		t.Errorf("got %s, %v", got, err)
	}
	cfg, _ = config(t, "no structure here")
	got, err = corrected(t, cfg, "data: x\nprompt: y", "{}")
	if err != nil ||
		got != `"no structure here"` {
		t.Errorf("got %s, %v", got, err)
	}
	for with, want := range map[string]string{
		"data: 1":                             `"corrector_action", "run" and "prompt" are missing`,
		"run: x\nprompt: y":                   `"run" excludes "corrector_action"`,
		"prompt: x\nhint: y":                  `unknown parameter "hint" of reflection.correct`,
		"prompt: x\nerrors: y":                `"errors" must be a list`,
		"data: 1\ncorrector_action: ecko":     "6:25: unknown action \"ecko\"; did you mean echo?",
		"data: 1\nrun: \"raise KeyError(1)\"": "the corrector ended by KeyError",
	} {
		t.Run(with, func(t *testing.T) {
			_, err := corrected(t, cfg, with, "{}")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", with, err, want)
			}
		})
	}
}
