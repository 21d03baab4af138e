package correct_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

const person = `{type: object, required: [name, email, address], properties: {name: {type: string, minLength: 1},
 email: {type: string}, tags: {type: array, items: {type: string}},
 address: {type: object, required: [city, zip], properties: {zip: {type: string}}}}}`

// TestScoresWeighWhatTheSchemaAsks checks the scores of better and worse outputs under several
// schemas.
//
// Source 004, repl/workflow/internal/correct/score.go: reflection_best_score is the score of
// the best output (0.0-1.0).
func TestScoresWeighWhatTheSchemaAsks(t *testing.T) {
	skip.WithoutJail(t)
	scoreOf := func(schema, data string) string {
		cfg, _ := config(t, "")
		got, err := evaluate(t, cfg, "schema: "+strings.ReplaceAll(schema, "\n", "")+
			"\ndata: \"{{ state.data }}\"", `{"data": `+data+`}`)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(got, `"score":`)
		score, _, _ := strings.Cut(rest, ",")
		return score
	}
	for _, c := range []struct{ schema, data, score string }{
		{person, `null`, "0.0"},
		{person, `[]`, "0.0"},
		{person, `"Here you are: Ann."`, "0.0"},
		{person, `"[1, 2]"`, "0.0"},
		{person, `7`, "0.0"},
		// There are 6 parts: the object and 3 members, one of them with 2 members.
		{person, `{}`, "0.1667"},
		{person, `{"name": "Ann"}`, "0.3333"},
		{person, `{"name": "", "email": "a"}`, "0.3333"},
		{person, `"so: {\"name\": \"Ann\", \"email\": \"a@b\"}"`, "0.5"},
		{person, `{"name": "Ann", "email": "a@b", "address": {"city": "Rom"}}`, "0.8333"},
		{
			person,
			`{"name": "Ann", "email": "a@b", "address": {"city": "Rom", "zip": "1"}, "tags": ["x", {}]}`,
			"0.8889",
		},
		{`{type: array, minItems: 2, items: {type: integer}}`, `[]`, "0.0"},
		{`{type: array, minItems: 2, items: {type: integer}}`, `[1]`, "0.5"},
		{`{type: array, items: {type: integer}}`, `[1, "x", 3]`, "0.75"},
		{
			`{$ref: "#/$defs/p", $defs: {p: {type: object, required: [a, p], properties: {p: {$ref: "#/$defs/p"}}}}}`,
			`{"a": 1}`, "",
		},
		{`{anyOf: [{type: object, required: [a]}, {type: "null"}]}`, `[]`, "0.0"},
		{
			`{type: object, additionalProperties: false, properties: {"a b": {type: integer}}}`,
			`{"a b": "x", "c": 1}`, "0.3333",
		},
		{`{type: array, items: {type: integer}}`, "[" + strings.Repeat(`"x", `, 99) + "1]", "0.0198"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.schema), func(t *testing.T) {
			if got := scoreOf(c.schema, c.data); got != c.score && c.score != "" {
				t.Errorf("%s has the score %s, want %s", c.data, got, c.score)
			}
		})
	}
}

// TestTheBestAttemptHasTheWantedType checks that, in any order, an object that is nearly right is
// better than an empty list or prose.
func TestTheBestAttemptHasTheWantedType(t *testing.T) {
	skip.WithoutJail(t)
	const nearly = `{"a": 1, "c": 3}`
	for _, replies := range [][]string{{"[]", nearly, "I cannot."}, {nearly, "[]", "[]"}, {"no", "[]", nearly}} {
		t.Run(fmt.Sprintf("%.60q", replies), func(t *testing.T) {
			cfg, _ := config(t, replies...)
			outcome, err := run(t, loopOf(""), cfg, "{}")
			if err != nil || asJSON(t, outcome.State["reflection_output"]) != `{"a":1,"c":3}` ||
				asJSON(t, outcome.State["reflection_best"]) != `{"a":1,"c":3}` {
				t.Errorf("%q: got %s, %v", replies, asJSON(t, outcome.State), err)
			}
		})
	}
}

// TestWithoutAnyValueThereIsNoBestAttempt checks that state.get("reflection_best", default) then
// returns the default, even if an earlier loop had a best attempt.
//
// Source 004, repl/workflow/internal/correct/score.go: Graceful degradation:
// state.get("reflection_best", {}) works if no output has a value.
func TestWithoutAnyValueThereIsNoBestAttempt(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, "Here is my content: spring.")
	outcome, err := run(t, loopOf("      max_iterations: 2\n")+`
  - run: |
      best = state.get("reflection_best", {})
      return {"content": best.get("content", "Default content"), "last": state["reflection_output"]}
`, cfg, `{"reflection_best": "of an earlier loop"}`)
	if err != nil || outcome.State["content"] != "Default content" ||
		outcome.State["last"] != "Here is my content: spring." ||
		asJSON(t, outcome.State["reflection_best_score"]) != "0.0" {
		t.Errorf("got %s, %v", asJSON(t, outcome.State), err)
	}
}

// TestAVerdictMustNotContradictItself checks that a valid output cannot have a score of 0.
func TestAVerdictMustNotContradictItself(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, `{"valid": true, "score": 0.0}`)
	for _, with := range []string{
		"evaluator_type: custom\nrun: |\n  result = {'valid': True, 'score': 0.0}",
		"evaluator_type: llm\nprompt: \"{{ state.reflection_output }}\"",
	} {
		t.Run(fmt.Sprintf("%.60s", with), func(t *testing.T) {
			got, err := evaluate(t, cfg, "data: 1\n"+with, "{}")
			if err != nil || !strings.Contains(got, `"valid":false`) || !strings.Contains(got, "contradict") {
				t.Errorf("%s: got %s, %v", with, got, err)
			}
		})
	}
}

// TestAJudgeAlwaysSeesTheOutput checks that the output is appended to a prompt that omits it.
func TestAJudgeAlwaysSeesTheOutput(t *testing.T) {
	skip.WithoutJail(t)
	for prompt, want := range map[string]string{
		"Is it good?": "Is it good?\n\nJudge this:\n{\"n\":41}",
		"Is {{ state.reflection_output.n }} good?":  "Is 41 good?",
		"Is {{ state.reflection_output }} good?":    "Is {\"n\": 41} good?",
		"Is {{ state.given | tojson }} good?":       `Is {"n":41} good?`,
		"Is {{ state.given.n }} good? Or 41, or 7?": "Is 41 good? Or 41, or 7?\n\nJudge this:\n{\"n\":41}",
	} {
		t.Run(prompt, func(t *testing.T) {
			cfg, models := config(t, `{"valid": true}`)
			_, err := evaluate(t, cfg, fmt.Sprintf(
				"data: \"{{ state.given }}\"\nevaluator_type: llm\nprompt: %q", prompt,
			), `{"given": {"n": 41}}`)
			if err != nil || models.prompt(0) != want {
				t.Errorf("the judge was asked %q, want %q, %v", models.prompt(0), want, err)
			}
		})
	}
}

// TestFailuresNameTheirIteration checks that failures name the file, the node and the iteration.
func TestFailuresNameTheirIteration(t *testing.T) {
	skip.WithoutJail(t)
	cfg, _ := config(t, "{}")
	_, err := run(t, loopOf("      corrector: {action: llm.call, prompt: \"{{ state.a.b.c }}\"}\n"), cfg, "{}")
	want := `w.yaml: node "loop": reflection.loop: iteration 2: the corrector: llm.call: the template ended`
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestReasonsAreBounded checks that reasons are bounded, because they become part of the state and
// of further prompts.
func TestReasonsAreBounded(t *testing.T) {
	skip.WithoutJail(t)
	long := strings.Repeat("x", 50_000)
	cfg, _ := config(t, fmt.Sprintf(
		`{"valid": false, "reason": %q, "errors": [%q, {"message": %q}], "suggestions": [%q]}`,
		long, long, long, long,
	))
	got, err := evaluate(t, cfg, "data: 1\nevaluator_type: llm\nprompt: \"{{ state.reflection_output }}\"", "{}")
	if err != nil || len(got) > 9_000 || strings.Count(got, "TRUNCATED: 48000") != 4 {
		t.Errorf("%d bytes: %.300s, %v", len(got), got, err)
	}
}
