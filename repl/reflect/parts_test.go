package reflect

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/agenttrace"
	"github.com/rlmhq/rlm/repl/internal/conversation"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// oneModel resolves every name to a model that cannot answer.
type oneModel struct{}

func (oneModel) Resolve(name string) (llm.Model, error) { return llm.Model{Name: name}, nil }

func noRunner(context.Context, tiers.Config) (repl.Runner, error) { return nil, router.ErrNoTier }

// threeSteps returns a trace of three steps.
func threeSteps(t *testing.T) *agenttrace.Trace {
	t.Helper()
	parsed, err := agenttrace.Parse([]byte("1. a\n2. b\n3. c\n"), "reasoning")
	if err != nil {
		t.Fatal(err)
	}

	return parsed.Trace
}

// TestPromptTemplateVariablesTable checks each variable.
//
// Source 000, repl/reflect/template.go: The initial prompt sent to the LLM must contain 12
// format variables.
//
// Source 000, repl/reflect/template.go: {question_preview} is a truncated preview (150 chars
// max).
func TestPromptTemplateVariablesTable(t *testing.T) {
	truth := strings.Repeat("é", 151)
	s := Subject{
		Skillbook: "skills", trace: threeSteps(t), Question: strings.Repeat("q", 150),
		GroundTruth: &truth, steps: []agenttrace.AgentStep{{Reasoning: "a\nb", Answer: "\t"}},
	}
	got := variables(&s)
	for name, want := range map[string]string{
		"question_length": "150", "question_preview": strings.Repeat("q", 150),
		"reasoning_length": "3", "reasoning_preview": "a b", "answer_length": "1",
		"answer_preview": "", "ground_truth_length": "151",
		"ground_truth_preview": strings.Repeat("é", 149) + "…", "feedback_length": "0",
		"feedback_preview": "", "skillbook_length": "6", "step_count": "3",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 12 || len(promptVariables()) != 12 {
		t.Errorf("there are %d variables", len(got))
	}
	for _, name := range promptVariables() {
		if _, ok := got[name]; !ok {
			t.Errorf("%s has no value", name)
		}
	}
	got = variables(&Subject{})
	if got["step_count"] != "0" || got["reasoning_preview"] != "" {
		t.Errorf("of nothing: %v", got)
	}
}

func FuzzPreview(f *testing.F) {
	f.Add("a\n\n# b", "{x}")
	f.Add(strings.Repeat("é ", 400), "\xff\u2028")
	f.Fuzz(func(t *testing.T, text, other string) {
		line := preview(text + other)
		if utf8.RuneCountInString(line) > maxPreview ||
			strings.ContainsAny(line, "\n\r\x1b\u2028") || !utf8.ValidString(line) {
			t.Errorf("the preview of %q is %q", text+other, line)
		}
		filled, err := fill(text, map[string]string{other: "x"})
		if err == nil && strings.TrimSpace(text) == "" && filled != "" {
			t.Errorf("%q was filled to %q", text, filled)
		}
	})
}

// TestIterationContextTable checks that a step fills in its own fields and leaves its input
// unchanged.
//
// Source 000, repl/reflect/iteration.go: RRIterationContext carries state through the four
// inner steps of each REPL iteration.
func TestIterationContextTable(t *testing.T) {
	l := &loop{cfg: Config{MaxIterations: 9}.withDefaults()}
	first := iteration{
		messages: append(
			make([]llm.Message, 0, 8), llm.Message{Role: llm.RoleUser, Content: "prompt"},
		),
	}
	first.response = "```python\nx = 1\n```"
	extracted, err := l.extract(t.Context(), first)
	if err != nil || extracted.code == nil || *extracted.code != "x = 1" ||
		extracted.direct != nil || first.code != nil {
		t.Errorf("extracted %+v of %+v, %v", extracted, first, err)
	}
	first.response = "prose"
	other, err := l.extract(t.Context(), first)
	if err != nil || other.code != nil || *other.direct != "prose" {
		t.Errorf("extracted %+v, %v", other, err)
	}
	extracted.feedback = conversation.AppendReply(nil, "a", "b")
	second, again := extracted.next(), extracted.next()
	second.messages = append(second.messages, llm.Message{Content: "mine"})
	if second.index != 1 || len(again.messages) != 3 || len(first.messages) != 1 ||
		again.code != nil || again.response != "" || again.feedback != nil {
		t.Errorf("the next is %+v, then %+v", second, again)
	}
	if again.messages[1].Content != "a" || again.messages[2].Content != "b" || slices.ContainsFunc(
		again.messages, func(m llm.Message) bool { return m.Content == "mine" },
	) {
		t.Errorf("two iterations share messages: %+v", again.messages)
	}
}

// TestCheckStepTable checks the results of the last step for given results of the others. Without
// output it needs no session.
func TestCheckStepTable(t *testing.T) {
	const analysis = `{"reasoning": "r"}`
	source := "FINAL(x)"
	final := &tiers.Final{Value: tiers.Value(analysis)}
	prose, object := "prose", analysis
	for _, c := range []struct {
		name       string
		it         iteration
		terminated bool
		told       string
	}{
		{
			"an analysis by code",
			iteration{index: 1, code: &source, result: &execution{final: final, success: true}},
			true, "",
		},
		{"an analysis as the reply", iteration{index: 1, direct: &object, finish: llm.FinishStop}, true, ""},
		{"an analysis that is cut", iteration{index: 1, direct: &object, finish: llm.FinishLength}, false, wantCode},
		{
			"too early",
			iteration{index: 0, code: &source, result: &execution{final: final, success: true}},
			false, premature,
		},
		{"after an error", iteration{index: 1, code: &source, result: &execution{final: final}}, false, erroneous},
		{
			"code without one",
			iteration{index: 1, code: &source, result: &execution{success: true}},
			false,
			"[Iteration 2/9]",
		},
		{"neither", iteration{index: 1, direct: &prose}, false, wantCode},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := prepare(Config{MaxIterations: 9, Models: oneModel{}, Model: "m", Open: noRunner}, Subject{})
			if err != nil {
				t.Fatal(err)
			}
			c.it.response, c.it.done = "the reply", &turns.Turn{}
			got, err := l.check(t.Context(), c.it)
			if err != nil || got.terminated != c.terminated ||
				(got.reflection != nil) != c.terminated || (len(got.feedback) == 2) == c.terminated {
				t.Errorf("%s: %+v, %v", c.name, got, err)
				return
			}
			if c.terminated {
				if got.reflection.Reasoning != "r" {
					t.Errorf("%s: the reflection is %+v", c.name, got.reflection)
				}
				return
			}
			if got.feedback[0].Content != "the reply" ||
				!strings.Contains(got.feedback[1].Content, c.told) || c.it.feedback != nil {
				t.Errorf("%s: the feedback is %+v", c.name, got.feedback)
			}
		})
	}
}

// TestExecutionResultTable checks each field and when the code succeeded.
//
// Source 000, repl/reflect/iteration.go: ExecutionResult has stdout, stderr, final_value,
// exception and success.
func TestExecutionResultTable(t *testing.T) {
	of := func(r tiers.Result) *execution {
		return executionOf(
			&turns.Turn{Ran: []ledger.Snippet{{Result: router.Result{Result: r}}}, Final: r.Final},
		)
	}
	fine := of(tiers.Result{
		Status: tiers.StatusOK, Stdout: "out", Stderr: "err",
		Final: &tiers.Final{Value: tiers.Value("1")},
	})
	if fine.stdout != "out" || fine.stderr != "err" || string(fine.final.Value) != "1" ||
		!fine.success {
		t.Errorf("%+v", fine)
	}
	raised := of(tiers.Result{
		Status: tiers.StatusRaised,
		Stderr: "err\n",
		Exception: &tiers.Exception{
			Type: "ValueError", Message: "bad", Traceback: "Traceback\nValueError: bad\n",
		},
	})
	if raised.success || raised.stderr != "err\nTraceback\nValueError: bad\n" ||
		raised.final != nil {
		t.Errorf("%+v", raised)
	}
	stopped := of(tiers.Result{Status: tiers.StatusLimit, Limit: tiers.LimitWall})
	if stopped.success {
		t.Errorf("%+v", stopped)
	}
	none := executionOf(&turns.Turn{Notes: []string{"no tier"}})
	if none.success || none.stderr != "no tier\n" {
		t.Errorf("%+v", none)
	}
}

func TestOutputIsReadLeniently(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"text", `"just text"`, `{"reasoning":"just text"}`},
		{"number", `42`, `{"reasoning":"42"}`},
		{"list", `["a"]`, `{"reasoning":"[\"a\"]"}`},
		{
			"wrong types", `{"reasoning": ["a", 1], "key_insight": 3, "correct_approach": null, ` +
				`"error_identification": true}`,
			`{"reasoning":"[\"a\", 1]","error_identification":"true","key_insight":"3"}`,
		},
		{
			"one learning",
			`{"reasoning": "r", "extracted_learnings": {"learning": "l", "atomicity_score": "0.5"}}`,
			`{"reasoning":"r","extracted_learnings":[{"learning":"l","atomicity_score":0.5,"evidence":""}]}`,
		},
		{
			"texts for entries", `{"reasoning": "r", "extracted_learnings": ["l", "", null, {}],` +
				` "skill_tags": ["s-1", {"tag": "helpful"}]}`,
			`{"reasoning":"r","extracted_learnings":[{"learning":"l","atomicity_score":0,` +
				`"evidence":""}],"skill_tags":[{"id":"s-1","tag":"neutral"}]}`,
		},
		{
			"scores", `{"reasoning": "r", "extracted_learnings": [{"learning": "a", ` +
				`"atomicity_score": 7}, {"learning": "b", "atomicity_score": -1}, {"learning": ` +
				`"c", "atomicity_score": "much"}, {"learning": "d", "atomicity_score": "NaN"}]}`,
			`{"reasoning":"r","extracted_learnings":[{"learning":"a","atomicity_score":1,` +
				`"evidence":""},{"learning":"b","atomicity_score":0,"evidence":""},` +
				`{"learning":"c","atomicity_score":0,"evidence":""},{"learning":"d",` +
				`"atomicity_score":0,"evidence":""}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := parseAnalysis(json.RawMessage(c.value))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				return
			}
			got := map[string]any{}
			for name, value := range map[string]any{
				"reasoning": o.Reasoning, "error_identification": o.ErrorIdentification,
				"root_cause_analysis": o.RootCauseAnalysis, "correct_approach": o.CorrectApproach,
				"key_insight": o.KeyInsight, "extracted_learnings": o.ExtractedLearnings,
				"skill_tags": o.SkillTags,
			} {
				data, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				if string(data) != `""` && string(data) != "[]" {
					got[name] = json.RawMessage(data)
				}
			}
			var want map[string]json.RawMessage
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			for name := range want {
				if string(want[name]) != string(got[name].(json.RawMessage)) {
					t.Errorf("%s: %s is %s, want %s", c.name, name, got[name], want[name])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s: got %v, want %s", c.name, got, c.want)
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	for name, value := range map[string]string{
		"nothing": "null", "no reasoning": `{"key_insight": "k"}`, "blank": `{"reasoning": " \n"}`,
		"empty": `""`, "not JSON": "{",
		"large": `{"reasoning": "` + strings.Repeat("x", maxOutput) + `"}`,
		"deep":  strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			if o, err := parseAnalysis(json.RawMessage(value)); err == nil {
				t.Errorf("%s was taken: %+v", name, o)
			}
		})
	}
}

func FuzzParseOutput(f *testing.F) {
	for _, seed := range []string{
		`{"reasoning": "r", "extracted_learnings": [{"learning": "l", "atomicity_score": ` +
			`1e999}], "skill_tags": {"id": 1}}`,
		`"\ud800"`, `[[[[]]]]`, `{"reasoning": {}, "raw": {"rr_trace": 1}}`, "\xff", `{"timeout": 1, "reasoning": 0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		o, err := parseAnalysis(value)
		if err != nil {
			return
		}
		if o.Raw[rawTimeout] != nil || o.Raw[rawTrace] != nil ||
			strings.TrimSpace(o.Reasoning) == "" {
			t.Errorf("%q gave %+v", value, o)
		}
		for _, l := range o.ExtractedLearnings {
			if !(l.AtomicityScore >= 0 && l.AtomicityScore <= 1) || l.Learning == "" {
				t.Errorf("%q gave %+v", value, l)
			}
		}
		if _, err := json.Marshal(o); err != nil {
			t.Errorf("%q cannot be written again: %v", value, err)
		}
	})
}

func FuzzDirect(f *testing.F) {
	f.Add("```json\n{}\n```")
	f.Add("{")
	f.Fuzz(func(t *testing.T, reply string) {
		if value, ok := direct(reply); ok && (!json.Valid(value) || value[0] != '{') {
			t.Errorf("%q gave %q", reply, value)
		}
	})
}
