package reflect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/reflect"
)

// record returns the record in an outcome.
func record(t *testing.T, o reflect.Outcome) reflect.Record {
	t.Helper()
	var r reflect.Record
	if err := json.Unmarshal(o.Output.Raw["rr_trace"], &r); err != nil {
		t.Fatalf("%v in %s", err, o.Output.Raw["rr_trace"])
	}
	return r
}

// system returns the system prompt of a request, or "".
func system(r llm.Request) string {
	if r.Messages[0].Role == llm.RoleSystem {
		return r.Messages[0].Content
	}
	return ""
}

// TestAskLLMTable checks each parameter.
//
// Source 000, repl/reflect/helper.go: ask_llm(question, context="", mode="analysis") calls the
// sub-agent LLM with a formatted prompt.
//
// Source 000, repl/reflect/helper.go: llm_query(prompt) calls ask_llm(prompt, "").
func TestAskLLMTable(t *testing.T) {
	m := after(code(`print(ask_llm("why?"))
print(ask_llm("why?", "step 1"))
print(ask_llm(question="why?", context={"step": 1}, mode="deep_dive"))
print(llm_query("plain"))`), code(good))
	answered(t, config(m))
	holds(
		t, m.told(t, 2), "re: why?\nre: why?\n\nContext:\nstep 1\nre: why?\n\nContext:\n{\"step\":",
		"re: plain",
	)
	for i, want := range []string{"analysis", "analysis", "deep_dive", "analysis"} {
		if got := system(m.asked[i]); got != answers.ModePrompt(want) || got == "" {
			t.Errorf("call %d had the system prompt %q", i, got)
		}
	}
}

// TestSubagentModesTable checks the prompt of each mode; an unknown mode uses the configured
// prompt.
//
// Source 000, repl/reflect/helper.go: "analysis" is a survey pass, "deep_dive" an
// investigation pass; an unknown mode falls back to the configured system prompt.
func TestSubagentModesTable(t *testing.T) {
	for mode, want := range map[string]string{
		"analysis": answers.ModePrompt("analysis"), "deep_dive": answers.ModePrompt("deep_dive"),
		"other": "You are terse.",
	} {
		t.Run(mode, func(t *testing.T) {
			m := after(code("ask_llm('q', '', '"+mode+"')"), code(good))
			cfg := config(m)
			cfg.SubagentSystemPrompt = "You are terse."
			answered(t, cfg)
			if got := system(m.asked[0]); got != want {
				t.Errorf("mode %s had the system prompt %q", mode, got)
			}
		})
	}
	m := after(code("ask_llm('q', '', 'other')"), code(good))
	answered(t, config(m))
	if got := system(m.asked[0]); got != answers.ModePrompt("analysis") {
		t.Errorf("the default prompt of other modes is %q", got)
	}
}

// TestSubagentConfigTable checks that the configuration reaches the model.
//
// Source 000, repl/reflect/helper.go: SubAgentConfig: model, max_tokens, temperature,
// system_prompt.
func TestSubagentConfigTable(t *testing.T) {
	m := after(code("ask_llm('q')"), code(good))
	answered(t, config(m))
	r := m.asked[0]
	if r.Model != "sub" || r.MaxTokens != 8192 || r.Temperature == nil || *r.Temperature != 0.3 {
		t.Errorf("by default it was asked %+v", r)
	}
	if main := m.requests[0]; main.Model != "main" || main.Temperature != nil {
		t.Errorf("the reflector was asked %+v", main)
	}
	m = after(code("ask_llm('q')"), code(good))
	cfg := config(m)
	cfg.SubModel, cfg.SubagentMaxTokens, cfg.SubagentTemperature = "", 100, pointer(0.0)
	answered(t, cfg)
	if r := m.asked[0]; r.Model != "main" || r.MaxTokens != 100 || r.Temperature == nil ||
		*r.Temperature != 0 {
		t.Errorf("configured, it was asked %+v", r)
	}
}

// TestSubagentHistory checks the recorded calls of a helper.
//
// Source 000, repl/reflect/helper.go: SubAgentLLM tracks call history: call_number, question,
// context_length, response_length, mode.
func TestSubagentHistory(t *testing.T) {
	m := after(
		code(
			"ask_llm('what is it?', 'é' * 5, mode='deep_dive')\nllm_query('p')\nllm_query_batched(['x'])",
		),
		code(good),
	)
	calls := record(t, answered(t, config(m))).SubagentCalls
	want := []reflect.SubagentCall{
		{
			CallNumber: 1, Question: "what is it?", ContextLength: 5,
			ResponseLength: len("re: what is it?\n\nContext:\n") + 5, Mode: "deep_dive",
		},
		{CallNumber: 2, Question: "p", ResponseLength: 5, Mode: "analysis"},
		{CallNumber: 3, Question: "x", ResponseLength: 5, Mode: "analysis"},
	}
	if len(calls) != len(want) {
		t.Fatalf("the history is %+v", calls)
	}
	for i := range want {
		if calls[i] != want[i] {
			t.Errorf("call %d is %+v, want %+v", i, calls[i], want[i])
		}
	}
}

// TestADisabledSubagentSaysSo checks the answer of a disabled helper.
//
// Source 000, repl/reflect/helper.go: When enable_subagent=False, returns "(ask_llm disabled -
// analyze with code)".
func TestADisabledSubagentSaysSo(t *testing.T) {
	m := after(
		code(
			"print(ask_llm('q', mode='deep_dive'), llm_query('q'), llm_query_batched(['q']))\n"+
				"try:\n    llm_query('q', schema=bool)\nexcept Exception as e:\n    print(e)",
		),
		code(good),
	)
	cfg := config(m)
	cfg.NoSubagent = true
	answered(t, cfg)
	const text = "(ask_llm disabled - analyze with code)"
	holds(t, m.told(t, 2), text+" "+text+" ['"+text+"']", "cannot return a typed value")
	if len(m.asked) != 0 {
		t.Errorf("%d calls were made", len(m.asked))
	}
}

// TestADisabledLLMQueryIsNotThere checks that snippets do not have a disabled llm_query.
//
// Source 000, repl/reflect/namespace.go: enable_llm_query: whether llm_query() is available in
// the sandbox.
func TestADisabledLLMQueryIsNotThere(t *testing.T) {
	m := after(
		code("print(ask_llm('q'))\ntry:\n    llm_query('q')\nexcept Exception as e:\n    print(e)"),
		code(good),
	)
	cfg := config(m)
	cfg.NoLLMQuery = true
	answered(t, cfg)
	holds(t, m.told(t, 2), "re: q", "llm_query: this function is switched off; use ask_llm")
}

// TestCallBudgetIsShared checks that calls of the reflector and of its helpers are counted
// together, and that the last calls are reserved for the reflector.
//
// Source 000, repl/reflect/helper.go: A shared budget enforces a single limit across main LLM
// calls and sub-agent calls.
//
// Source 000, repl/reflect/helper.go: When the budget is exhausted, ask_llm returns "(Max N
// LLM calls exceeded - continue with available data)".
func TestCallBudgetIsShared(t *testing.T) {
	m := after(
		code(
			"answers = llm_query_batched([str(i) for i in range(20)])\n"+
				"print(sum(a.startswith('re: ') for a in answers), {a for a in answers if not "+
				"a.startswith('re: ')}, ask_llm('more'))",
		),
		code(good),
	)
	cfg := config(m)
	cfg.MaxLLMCalls = 12
	outcome := answered(t, cfg)
	limit := "(Max 12 LLM calls exceeded - continue with available data)"
	holds(t, m.told(t, 2), "8 {'"+limit+"'} "+limit)
	if len(m.asked) != 8 || len(m.requests) != 3 || outcome.Spent.Calls != 11 ||
		len(record(t, outcome).SubagentCalls) != 8 {
		t.Errorf(
			"%d calls of helpers and %d of the reflector, spent %+v", len(m.asked), len(m.requests),
			outcome.Spent,
		)
	}
}

// TestTheLastCallIsForTheSynthesis checks that a call remains for the synthesis if calls run out
// before the iterations. Helpers also leave it unused, and the model is told how many calls remain.
func TestTheLastCallIsForTheSynthesis(t *testing.T) {
	const urgent = " (approaching limit — finalize soon)"
	greedy := code("print([llm_query(str(i)) for i in range(9)])")
	best := `{"reasoning": "so far", "key_insight": "k"}`
	for _, c := range []struct {
		calls  int
		script []string
		told   []string // the end of the first line of each feedback
	}{
		{1, []string{best}, nil},
		{2, []string{greedy, best}, []string{"[0 calls left]" + urgent}},
		{3, []string{greedy, best}, []string{"[0 calls left]" + urgent}},
		{5, []string{code("1"), code("2"), code("3"), code("4"), best}, []string{
			"[3 calls left]", "[2 calls left]" + urgent, "[1 calls left]" + urgent, "[0 calls left]" + urgent,
		}},
	} {
		m := &models{script: c.script}
		cfg := config(m)
		cfg.MaxLLMCalls = c.calls
		outcome := reflected(t, cfg)
		if outcome.Status != ledger.StatusSynthesised || outcome.Output.KeyInsight != "k" ||
			string(outcome.Output.Raw["partial"]) != "true" || outcome.Spent.Calls != int64(c.calls) {
			t.Errorf("with %d calls it ended as %+v", c.calls, outcome)
		}
		holds(t, outcome.Reason, fmt.Sprintf("the budget of %d call", c.calls))
		for i, want := range c.told {
			header, _, _ := strings.Cut(m.told(t, i+1), "\n")
			holds(t, header, fmt.Sprintf("[Iteration %d/20] ", i+1))
			if !strings.HasSuffix(header, want) {
				t.Errorf("with %d calls, feedback %d begins with %q, want %q", c.calls, i+1, header, want)
			}
		}
	}
}

// TestSomeTokensAreForTheSynthesis checks that the synthesis still takes place if tokens run out
// first.
func TestSomeTokensAreForTheSynthesis(t *testing.T) {
	m := &models{script: []string{code("print(1)  #" + strings.Repeat(" word", 1_480)), `{"reasoning": "so far"}`}}
	cfg := config(m)
	cfg.Budget.OutputTokens = 2_000
	outcome := reflected(t, cfg)
	if outcome.Status != ledger.StatusSynthesised || outcome.Output.Reasoning != "so far" ||
		len(m.requests) != 2 {
		t.Errorf("it ended as %s after %d calls: %s", outcome.Status, len(m.requests), outcome.Reason)
	}
	holds(t, outcome.Reason, "the budget of output tokens was used up")
}

// TestAnExhaustedBudgetEndsTheLoop checks the end of a run without budget.
//
// Source 000, repl/reflect/ending.go: When the budget is exhausted, the run ends with its best
// assessment.
func TestAnExhaustedBudgetEndsTheLoop(t *testing.T) {
	for noSynthesis, requests := range map[bool]int{true: 3, false: 3} {
		t.Run(fmt.Sprint(noSynthesis), func(t *testing.T) {
			m := after(code("print(1)"))
			cfg := config(m)
			cfg.MaxLLMCalls, cfg.NoSynthesis = 3, noSynthesis
			outcome := reflected(t, cfg)
			r := record(t, outcome)
			if outcome.Status != ledger.StatusPartial || string(outcome.Output.Raw["timeout"]) != "true" ||
				!r.TimedOut || len(m.requests) != requests {
				t.Errorf("it ended as %+v with %+v after %d calls", outcome, r, len(m.requests))
			}
			holds(t, outcome.Reason, "3 calls is used up")
		})
	}
}

func TestTheModelLearnsOfExhaustedBudgets(t *testing.T) {
	m := after(code("print(ask_llm('x' * 100_000))"), code(good))
	cfg := config(m)
	cfg.Budget.InputTokens = 20_000
	answered(t, cfg)
	holds(
		t, m.told(t, 2), "(the run's budget of 20000 input tokens", "continue with available data)",
	)
}

func TestFunctionsOfOtherLoopsAreNotThere(t *testing.T) {
	m := after(
		code(
			"for f in (rlm_query, predict, sub_agent_call):\n    try:\n"+
				"        print(f('a -> b', 'b'))\n    except Exception as e:\n        print(e)",
		),
		code(good),
	)
	answered(t, config(m))
	got := strings.Count(m.told(t, 2), "a reflection has no sub-loops, agents or signatures")
	if got != 3 {
		t.Errorf("the model was told %q", m.told(t, 2))
	}
}

func TestCombinatorsAskTheSubagent(t *testing.T) {
	source := "print(map_llm('p', ['a', 'b']))\ntry:\n    map_llm('p', list(range(100)))\n" +
		"except Exception as e:\n    print(e)"
	m := after(code(source), code(good))
	outcome := answered(t, config(m))
	holds(
		t, m.told(t, 2), `['re: p\n\nContext:\na', 're: p\n\nContext:\nb']`,
		"this needs about 100 calls",
	)
	calls := record(t, outcome).SubagentCalls
	if len(calls) != 2 || calls[0].Mode != "analysis" || len(m.asked) != 2 {
		t.Errorf("the history is %+v", calls)
	}
	m = after(code("print(map_llm('p', ['a', 'b']))"), code(good))
	cfg := config(m)
	cfg.NoSubagent = true
	answered(t, cfg)
	holds(t, m.told(t, 2), "['(ask_llm disabled", "! re: p")
}

func TestRepliesCanBeStreamedAndCut(t *testing.T) {
	m := after(code(good))
	m.finish = llm.FinishLength
	cfg := config(m)
	text := ""
	cfg.Stream = true
	cfg.Progress = func(e ledger.Event) {
		if e.Kind == ledger.EventDelta {
			text += e.Text
		}
	}
	answered(t, cfg)
	holds(t, text, "trace.summary()", good)
	holds(t, m.told(t, 1), turns.ReplyCut)
}

func TestATimeoutTellsWhetherTheAnswerIsRight(t *testing.T) {
	m := &models{script: []string{code("1")}}
	cfg := config(m)
	cfg.MaxIterations, cfg.NoSynthesis = 1, true
	outcome, err := reflect.Run(
		t.Context(), cfg,
		subjectOf(agentOutput{Question: "q", Answer: " Paris\n", GroundTruth: pointer("paris")}),
	)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, outcome.Output.Reasoning, "The agent's answer is the ground truth.")
	outcome, err = reflect.Run(
		t.Context(), cfg, subjectOf(agentOutput{Question: "q", Answer: "Paris"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, outcome.Output.Reasoning, "no ground truth")
}

// TestAFailedSynthesisIsTold checks that the reason names the failure of the last call and that the
// run returns no error.
func TestAFailedSynthesisIsTold(t *testing.T) {
	m := &models{script: []string{code("print(1)")}}
	cfg := config(m)
	cfg.MaxIterations = 2
	m.refuse = func(r llm.Request) error {
		if r.Metadata.Purpose == "synthesis" {
			return errors.New("the line is dead")
		}
		return nil
	}
	outcome := reflected(t, cfg)
	if outcome.Status != ledger.StatusNoAnswer || string(outcome.Output.Raw["timeout"]) != "true" {
		t.Errorf("it ended as %+v", outcome)
	}
	holds(
		t, outcome.Reason,
		"the 2 iterations were used up, and there is no last assessment: the line is dead",
	)
}
