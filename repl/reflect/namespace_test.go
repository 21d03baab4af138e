package reflect_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/tiers"
)

// TestNamespaceTable checks each name that snippets can use.
//
// Source 000, repl/reflect/namespace.go: Pre-loaded namespace: trace, traces, skillbook,
// ask_llm, llm_query, FINAL, FINAL_VAR, SHOW_VARS, json, re, collections, datetime, timedelta,
// date, time, timezone.
func TestNamespaceTable(t *testing.T) {
	prints(t, `import datetime as dt
assert type(trace).__name__ == "TraceContext" and len(trace) > 0
assert type(traces) is dict and type(skillbook) is str and skillbook == "[math-00001] Count on your fingers."
for f in (ask_llm, llm_query, FINAL, FINAL_VAR, SHOW_VARS, parallel_map, safe_getattr, getattr):
    assert callable(f), f
for m, name in ((json, "json"), (re, "re"), (collections, "collections")):
    assert m.__name__ == name
assert (datetime, timedelta, date, time, timezone) == (dt.datetime, dt.timedelta, dt.date, dt.time, dt.timezone)
print("all there")`, "all there")
}

func TestToolsOfTheEmbedder(t *testing.T) {
	m := &models{script: []string{code("print(search('sums'))"), code(good)}}
	cfg := config(m)
	tools, err := repl.NewTools(repl.Tool{
		Name: "search", Signature: "search(query)", Doc: "searches the archive.",
		Notes: "The archive has 3 boxes.",
		Call: func(_ context.Context, args map[string]tiers.Value) (tiers.Value, error) {
			return args["query"], nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Tools = tools
	answered(t, cfg)
	holds(t, m.told(t, 1), "sums")
	holds(t, m.requests[0].Messages[0].Content,
		"Further functions:\n- `search(query)`: searches the archive.\n\nThe archive has 3 boxes.")
}

// TestTraceMayBeNone checks the variables of a subject without steps.
//
// Source 000, repl/reflect/subject.go: trace is a TraceContext or None.
func TestTraceMayBeNone(t *testing.T) {
	m := &models{script: []string{code("print(trace, traces['steps'])"), code(good)}}
	cfg := config(m)
	if _, err := reflect.Run(t.Context(), cfg, reflect.Subject{}); err != nil {
		t.Fatal(err)
	}
	holds(t, m.told(t, 1), "None []")
}

// TestTracesDict compares the variable with its documented form.
//
// Source 000, repl/reflect/subject.go: Traces dict: question, ground_truth, feedback, and
// steps with role, reasoning, answer, skill_ids.
func TestTracesDict(t *testing.T) {
	m := &models{script: []string{code("print('<' + json.dumps(traces) + '>')"), code(good)}}
	answered(t, config(m))
	holds(
		t,
		m.told(t, 1),
		`<{"question": "What is 2+2?", "ground_truth": "4", "feedback": "Wrong.", "steps": [{"role": "agent", `+
			`"reasoning": "1. I add the numbers.\n2. Error: I lost count.", "answer": "5", `+
			`"skill_ids": ["math-00001"]}]}>`,
	)
}

// TestBlockedBuiltinsTable checks that the blocked names are None, while imports and code that
// relies on them keep working.
//
// Source 000, repl/reflect/namespace.py: Blocked builtins: open, __import__, eval, exec,
// compile, input, globals, locals, breakpoint, memoryview are all set to None.
func TestBlockedBuiltinsTable(t *testing.T) {
	prints(
		t,
		`for name in (open, __import__, eval, exec, compile, input, globals, locals, breakpoint, memoryview):
    assert name is None, name
try:
    open("/etc/passwd")
except TypeError as e:
    print(e)
import math, dataclasses
Point = collections.namedtuple("Point", "x y")
@dataclasses.dataclass
class P:
    x: int
print(math.sqrt(9), Point(1, 2), P(3))`,
		"'NoneType' object is not callable",
		"3.0 Point(x=1, y=2) P(x=3)",
	)
}

func TestBlockedBuiltinsStay(t *testing.T) {
	m := after(
		code("def later():\n    return open is None and getattr is safe_getattr"),
		code("print(later(), open)"), code(good),
	)
	answered(t, config(m))
	holds(t, m.told(t, 3), "True None")
}

// TestSafeGetattr checks which names getattr refuses.
//
// Source 000, repl/reflect/namespace.py: The builtin getattr is replaced with a safe version
// that blocks access to names starting with _.
func TestSafeGetattr(t *testing.T) {
	prints(t, `assert getattr is safe_getattr
print(getattr(trace, "steps") == trace.steps, getattr(trace, "nothing", 7))
for f in (getattr, safe_getattr):
    try:
        f(trace, "__class__")
    except AttributeError as e:
        print(e)`, "True 7", "Access to '__class__' blocked\nAccess to '__class__' blocked")
}

// TestShowVarsListsTheUsersVariables checks the output of SHOW_VARS.
//
// Source 000, repl/reflect/namespace.go: SHOW_VARS() prints available user variables.
func TestShowVarsListsTheUsersVariables(t *testing.T) {
	prints(
		t, "mine = [1, 2]\nSHOW_VARS()", "mine: list (2)", "traces: dict", "skillbook: str",
		"! safe_getattr", "! open:", "! json:", "! llm_query:",
	)
}

func TestParallelMapAsksAtOnce(t *testing.T) {
	m := after(code("print(parallel_map(ask_llm, ['a', 'b', 'c']))"), code(good))
	answered(t, config(m))
	holds(t, m.told(t, 2), "['re: a', 're: b', 're: c']")
}

// TestTimeoutEndsASnippet checks the time limit of a snippet.
//
// Source 000, repl/reflect/steps.go: timeout: seconds per sandbox execute() call.
func TestTimeoutEndsASnippet(t *testing.T) {
	m := after(
		code("kept = 1\nprint('begun')"), code("while True:\n    pass"),
		code("print('still', kept, trace.summary(), open)"), code(good),
	)
	cfg := config(m)
	cfg.Timeout = 2 * time.Second
	answered(t, cfg)
	holds(t, m.told(t, 3), "The code was stopped: it used up its limit of time.")
	holds(t, m.told(t, 4), "still 1", "None")
}

// TestFinalVarOfAMissingNameDoesNotEndTheLoop checks that the loop continues after such a call.
//
// Source 000, repl/internal/turns/final.go: FINAL_VAR(name) submits a pre-built variable; a
// missing name is an error for the model.
func TestFinalVarOfAMissingNameDoesNotEndTheLoop(t *testing.T) {
	m := after(
		code("result = {'reasoning': 'r'}\nFINAL_VAR('reslut')"), code("FINAL_VAR('result')"),
	)
	outcome := answered(t, config(m))
	holds(t, m.told(t, 2), "there is no variable 'reslut'", "result")
	if outcome.Output.Reasoning != "r" {
		t.Errorf("%+v", outcome.Output)
	}
}

// TestFinalTakesEveryField submits the complete form.
//
// Source 000, repl/reflect/output.go: FINAL(value) submits the analysis result: a dict
// matching ReflectorOutput fields.
func TestFinalTakesEveryField(t *testing.T) {
	m := after(code(`FINAL({
    "reasoning": "a", "error_identification": "b", "root_cause_analysis": "c", ` +
		`"correct_approach": "d", "key_insight": "e",
    "extracted_learnings": [{"learning": "f", "atomicity_score": 0.8, "evidence": "g"}],
    "skill_tags": [{"id": "section-00001", "tag": "helpful"}],
})`))
	o := answered(t, config(m)).Output
	o.Raw = nil
	got, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"reasoning":"a","error_identification":"b","root_cause_analysis":"c",` +
		`"correct_approach":"d","key_insight":"e",` +
		`"extracted_learnings":[{"learning":"f","atomicity_score":0.8,"evidence":"g"}],` +
		`"skill_tags":[{"id":"section-00001","tag":"helpful"}],"raw":null}`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
