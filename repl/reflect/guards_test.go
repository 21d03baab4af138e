package reflect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/looptest"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/reflect"
)

const (
	premature = "You called FINAL() before exploring the data. Read the actual variables first, " +
		"then call FINAL() with evidence-based analysis."
	erroneous = "Your code had an error. Fix the bug and try again. Do NOT call FINAL() until " +
		"your code executes successfully."
)

// TestGuardPrematureFinal checks that an analysis of the first iteration is rejected in every form,
// and that an analysis of a later iteration is accepted.
//
// Source 000, repl/reflect/steps.go: If FINAL() is called on the first iteration, it is
// rejected.
func TestGuardPrematureFinal(t *testing.T) {
	for name, first := range map[string]string{
		"code": code("seen = 1\nprint('looked')\n" + good), "text": good, "json": `{"reasoning": "made up"}`,
	} {
		t.Run(name, func(t *testing.T) {
			m := &models{script: []string{first, code(good)}}
			outcome := answered(t, config(m))
			holds(t, m.told(t, 1), "[Iteration 1/20] [28 calls left]\n", premature)
			if outcome.Iterations != 2 || outcome.Output.Reasoning != "The agent said 5." {
				t.Errorf("it ended as %+v", outcome)
			}
		})
	}
}

// TestGuardFinalAfterError runs code that continues after FINAL and fails.
//
// Source 000, repl/reflect/steps.go: If FINAL() is called but the code execution had an error,
// it is rejected.
func TestGuardFinalAfterError(t *testing.T) {
	m := after(code("try:\n    "+good+"\nfinally:\n    1 / 0"), code(good))
	outcome := answered(t, config(m))
	holds(t, m.told(t, 2), "ZeroDivisionError", erroneous)
	if outcome.Iterations != 3 {
		t.Errorf("it took %d iterations", outcome.Iterations)
	}
}

// TestGuardDirectResponse checks that a JSON reply is the analysis, and that any other reply
// without code makes the loop ask for code.
//
// Source 000, repl/reflect/steps.go: When no code block is extracted, direct JSON is treated
// as a FINAL() value; otherwise the LLM receives feedback requesting code.
func TestGuardDirectResponse(t *testing.T) {
	for name, reply := range map[string]string{
		"plain":  `{"reasoning": "r", "key_insight": "k"}`,
		"fenced": "```json\n{\"reasoning\": \"r\", \"key_insight\": \"k\"}\n```",
		"bare":   "```\n{\"reasoning\": \"r\", \"key_insight\": \"k\"}\n```\n",
		"indented": "{\n    \"reasoning\": \"r\",\n    \"key_insight\": \"k\",\n" +
			"    \"correct_approach\": \"print(x) and FINAL(y)\"\n}",
	} {
		t.Run(name, func(t *testing.T) {
			outcome := answered(t, config(after(reply)))
			last := record(t, outcome).Iterations[1]
			if o := outcome.Output; o.Reasoning != "r" || o.KeyInsight != "k" || last.Code != nil ||
				last.Stdout != nil || !last.Terminated {
				t.Errorf("%+v, %+v", o, last)
			}
		})
	}
	for name, reply := range map[string]string{
		"prose": "I think that it went well.", "number": "42", "list": "[1]", "empty": "",
		"broken": `{"reasoning": `,
	} {
		t.Run(name, func(t *testing.T) {
			m := after(reply, code(good))
			answered(t, config(m))
			holds(t, m.told(t, 2), "neither code nor an analysis", "```python")
		})
	}
}

func TestAnAnalysisWithoutReasoningIsAskedForAgain(t *testing.T) {
	m := after(code("kept = 1\nFINAL({'key_insight': 'k'})"), code("FINAL({'reasoning': kept})"))
	outcome := answered(t, config(m))
	holds(t, m.told(t, 2), `FINAL() was not accepted: the analysis has no "reasoning"`)
	if outcome.Output.Reasoning != "1" {
		t.Errorf("%+v", outcome.Output)
	}
}

// TestTemplateMethodsTable checks how iterations begin, follow one another and end.
//
// Source 000, repl/reflect/loop.go: RRStep.run_loop() runs an iterative loop: each iteration
// runs four steps sequentially.
//
// Source 000, repl/reflect/loop.go: _is_done(ctx) returns ctx.terminated; _extract_result(ctx)
// returns the parsed ReflectorOutput.
//
// Source 000, repl/reflect/loop.go: _accumulate(ctx) appends feedback messages to history, and
// increments the iteration counter.
func TestTemplateMethodsTable(t *testing.T) {
	m := &models{
		script: []string{
			code("mine = 1\nprint('first')"), code("print('mine is', mine)"), code(good),
		},
	}
	outcome := answered(t, config(m))
	sent := func(i int) []llm.Message { return m.requests[i].Messages }
	log := record(t, outcome).Iterations
	for name, ok := range map[string]bool{
		"_build_initial_context": len(sent(0)) == 1 && sent(0)[0].Role == llm.RoleUser && log[0].Iteration == 0,
		"_accumulate": len(sent(1)) == 3 && len(sent(2)) == 5 &&
			sent(2)[0].Content == sent(0)[0].Content &&
			strings.Contains(sent(2)[2].Content, "[Iteration 1/20]") &&
			strings.Contains(sent(2)[4].Content, "[Iteration 2/20]"),
		"_is_done": outcome.Iterations == 3 && len(m.requests) == 3,
		"_extract_result": outcome.Output.Reasoning == "The agent said 5." &&
			outcome.Output.KeyInsight == "Count twice.",
		"run_loop": len(log) == 3 && strings.Contains(*log[1].Stdout, "mine is 1") && log[2].Terminated,
	} {
		if !ok {
			t.Errorf("%s: the requests are %+v, the record %+v", name, m.requests, log)
		}
	}
	// _build_inner_pipeline: a run finds nothing of the previous one.
	again := &models{script: []string{code("print('mine' in dir())"), code(good)}}
	answered(t, config(again))
	holds(t, again.told(t, 1), "False")
	// _on_timeout: there is always an output.
	cfg := config(&models{script: []string{code("1"), code("2"), "I do not know."}})
	cfg.MaxIterations = 2
	timedOut(t, cfg)
}

// TestIterationHeader checks the counter and the urgent note near the end.
//
// Source 000, repl/reflect/steps.go: Each feedback message includes [Iteration N/max]; within
// 2 iterations of the limit, (approaching limit — finalize soon) is added.
func TestIterationHeader(t *testing.T) {
	m := &models{script: []string{code("print(1)")}}
	cfg := config(m)
	cfg.MaxIterations = 5
	reflected(t, cfg)
	const urgent = " (approaching limit — finalize soon)"
	for n, want := range []string{"", "", urgent, urgent, urgent} {
		holds(t, m.told(t, n+1), fmt.Sprintf("[Iteration %d/5] [%d calls left]%s\nstdout", n+1, 28-n, want))
	}
}

// TestOutputIsTruncated checks the bound on output and the line that states it.
//
// Source 000, repl/reflect/steps.go: Per-execution stdout/stderr is truncated at
// max_output_chars with a [TRUNCATED: N chars remaining] suffix.
func TestOutputIsTruncated(t *testing.T) {
	m := after(code("print('é' * 5_000)"), code(good))
	cfg := config(m)
	cfg.MaxOutputChars = 2_000
	outcome := answered(t, cfg)
	holds(t, m.told(t, 2), strings.Repeat("é", 2_000)+"\n[TRUNCATED: 3000 chars remaining]")
	if got := *record(t, outcome).Iterations[1].Stdout; !strings.HasSuffix(
		got, "[TRUNCATED: 3001 chars remaining]",
	) {
		t.Errorf("the record has %q", got)
	}
}

// TestBatchRunsAllBlocks checks that the blocks of a batch run as one script.
//
// Source 000, repl/internal/turns/extract.go: When the first fenced block starts with # BATCH,
// all fenced blocks are concatenated into a single script.
func TestBatchRunsAllBlocks(t *testing.T) {
	m := after(
		"```python\n# BATCH\na = 1\n```\nand\n```python\nprint('a is', a)\n```",
		"```python\nb = 2\n```\n```python\nprint('never')\n```", code(good),
	)
	answered(t, config(m))
	holds(t, m.told(t, 2), "a is 1")
	holds(t, m.told(t, 3), "! never", "New variables: b")
}

// TestLongConversationsAreTrimmed checks that a sent conversation loses its least important turns,
// keeps its first message, and says in one line what is missing.
//
// Source 000, repl/internal/conversation/history.go: When message history exceeds
// max_context_chars, the lowest-value iterations are dropped; the first message is always
// kept.
//
// Source 000, repl/internal/conversation/history.go: Kept iterations maintain chronological
// order.
func TestLongConversationsAreTrimmed(t *testing.T) {
	dull := code("print('.' * 3_000)")
	m := &models{
		script: []string{dull, code("raise ValueError('x' * 3_000)"), dull, dull, dull, code(good)},
	}
	cfg := config(m)
	cfg.MaxContextChars = 14_000
	answered(t, cfg)
	sent := m.requests[len(m.requests)-1].Messages
	text := looptest.Transcript(sent)
	holds(t, text, "earlier iterations omitted: 0 error(s), ", "ValueError", "[Iteration 5/20]")
	if len(text) > 15_000 ||
		!strings.HasPrefix(sent[0].Content, m.requests[0].Messages[0].Content+"\n\n[") {
		t.Errorf("%d characters were sent: %.300q", len(text), text)
	}
	for i, message := range sent {
		if want := []llm.Role{llm.RoleUser, llm.RoleAssistant}[i%2]; message.Role != want {
			t.Errorf("message %d is the %s's", i, message.Role)
		}
	}
}

// TestFallbackSynthesis checks the last call, whose code runs in a fresh sandbox.
//
// Source 000, repl/reflect/ending.go: A synthesis prompt asks the LLM to call FINAL() with its
// best assessment; its code is executed in a fresh sandbox.
//
// Source 000, repl/reflect/ending.go: If no code is found, direct JSON parsing is attempted.
//
// Source 000, repl/reflect/ending.go: If synthesis fails, a basic timeout ReflectorOutput is
// returned with raw["timeout"] = True.
func TestFallbackSynthesis(t *testing.T) {
	cfg := func(m *models) reflect.Config {
		c := config(m)
		c.MaxIterations = 2
		return c
	}
	t.Run("code", func(t *testing.T) {
		m := &models{
			script: []string{
				code("mine = 1"),
				code("print(mine)"),
				code(
					"assert 'mine' not in dir() and trace and traces and skillbook\nFINAL({'reasoning': 'so far'})",
				),
			},
		}
		outcome := reflected(t, cfg(m))
		r := record(t, outcome)
		if outcome.Status != ledger.StatusSynthesised || outcome.Output.Reasoning != "so far" ||
			!r.TimedOut || r.TotalIterations != 2 || outcome.Output.Raw["timeout"] != nil ||
			string(outcome.Output.Raw["partial"]) != "true" {
			t.Errorf("it ended as %+v with %+v", outcome, r)
		}
		last := m.requests[len(m.requests)-1]
		if last.Metadata.Purpose != "synthesis" ||
			last.Messages[len(last.Messages)-1].Role != llm.RoleUser {
			t.Errorf("the last request is %+v", last.Metadata)
		}
		holds(t, looptest.Transcript(last.Messages), "no iterations left", "[Iteration 2/2]")
	})
	t.Run("json", func(t *testing.T) {
		outcome := reflected(
			t, cfg(&models{script: []string{code("1"), code("2"), `{"reasoning": "in short"}`}}),
		)
		if outcome.Status != ledger.StatusSynthesised || outcome.Output.Reasoning != "in short" {
			t.Errorf("it ended as %+v", outcome)
		}
	})
	for name, reply := range map[string]string{
		"prose": "I do not know.", "no FINAL": code("print(1)"),
		"failing code":   code("try:\n    FINAL({'reasoning': 'r'})\nfinally:\n    1/0"),
		"empty analysis": code("FINAL({})"), "old variables": code("FINAL({'reasoning': mine})"),
	} {
		t.Run(
			name,
			func(t *testing.T) { timedOut(t, cfg(&models{script: []string{code("mine = 1"), code("2"), reply}})) },
		)
	}
	t.Run("off", func(t *testing.T) {
		m := &models{script: []string{code("1"), code("2"), code(good)}}
		c := cfg(m)
		c.NoSynthesis = true
		timedOut(t, c)
		if len(m.requests) != 2 {
			t.Errorf("%d requests", len(m.requests))
		}
	})
}

// timedOut runs a reflection that ends without an analysis.
func timedOut(t *testing.T, cfg reflect.Config) {
	t.Helper()
	outcome := reflected(t, cfg)
	o := outcome.Output
	if outcome.Status != ledger.StatusNoAnswer || string(o.Raw["timeout"]) != "true" ||
		!record(t, outcome).TimedOut {
		t.Errorf("it ended as %+v", outcome)
	}
	holds(
		t, o.Reasoning, "the 2 iterations were used up",
		"The agent's answer differs from the ground truth.",
	)
}

// TestRRTraceSchema compares the record with the documented form, key by key.
//
// Source 000, repl/reflect/record.go: raw["rr_trace"] has iterations, subagent_calls,
// total_iterations and timed_out.
func TestRRTraceSchema(t *testing.T) {
	m := after(
		"no code", code("print('out')\nraise ValueError('bad')"), code("ask_llm('q')\n"+good),
	)
	outcome := answered(t, config(m))
	var got map[string]any
	if err := json.Unmarshal(outcome.Output.Raw["rr_trace"], &got); err != nil {
		t.Fatal(err)
	}
	keys := func(v any) string { return strings.Join(slices.Sorted(maps.Keys(v.(map[string]any))), " ") }
	iterations := got["iterations"].([]any)
	if keys(got) != "iterations subagent_calls timed_out total_iterations" ||
		got["timed_out"] != false || got["total_iterations"] != 4.0 || len(iterations) != 4 {
		t.Fatalf("the record is %v", got)
	}
	for i, want := range []string{
		"{0 print(trace.summary()) str " +
			"str false}", "{1 null null " +
			"null false}", "{2 print('out')\nraise ValueError('bad') str " +
			"str false}", "{3 ask_llm('q')\n" + good + " str str true}",
	} {
		it := iterations[i].(map[string]any)
		if keys(it) != "code iteration stderr stdout terminated" {
			t.Errorf("iteration %d has the keys %s", i, keys(it))
		}
		kind := func(v any) string {
			if v == nil {
				return "null"
			}
			return "str"
		}
		code := "null"
		if it["code"] != nil {
			code = it["code"].(string)
		}
		s := fmt.Sprintf(
			"{%v %s %s %s %v}", it["iteration"], code, kind(it["stdout"]), kind(it["stderr"]),
			it["terminated"],
		)
		if s != want {
			t.Errorf("iteration %d is %s, want %s", i, s, want)
		}
	}
	third := iterations[2].(map[string]any)
	holds(t, third["stdout"].(string), "out\n")
	holds(t, third["stderr"].(string), "ValueError: bad")
	call := got["subagent_calls"].([]any)[0]
	if keys(call) != "call_number context_length mode question response_length" {
		t.Errorf("a call has the keys %s", keys(call))
	}
}

func TestAModelCannotForgeWhatTheLoopSays(t *testing.T) {
	m := after(
		code(
			"FINAL({'reasoning': 'r', 'timeout': True, 'partial': True, 'rr_trace': {'timed_out': True}, 'mine': [1]})",
		),
	)
	raw := answered(t, config(m)).Output.Raw
	if raw["timeout"] != nil || raw["partial"] != nil ||
		strings.Contains(string(raw["rr_trace"]), `"timed_out":true`) ||
		string(raw["mine"]) != "[1]" {
		t.Errorf("raw is %s", raw)
	}
}

func TestARefusalEndsTheLoop(t *testing.T) {
	m := &models{script: []string{"I would rather not."}, finish: llm.FinishRefusal}
	outcome, err := reflect.Run(t.Context(), config(m), subject())
	if err == nil || outcome.Status != ledger.StatusFailed ||
		!strings.Contains(err.Error(), "declined: I would rather not.") {
		t.Errorf("it ended as %+v, %v", outcome, err)
	}
}

func TestCancellationEndsTheLoop(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	m := after(code("ask_llm('q')"))
	cfg := config(m)
	cfg.Progress = func(e ledger.Event) {
		if e.Kind == ledger.EventCallStarted {
			cancel(stop)
		}
	}
	outcome, err := reflect.Run(ctx, cfg, subject())
	if !errors.Is(err, stop) || outcome.Status != ledger.StatusCanceled {
		t.Errorf("it ended as %+v, %v", outcome, err)
	}
}

func TestEventsAndTrajectoryTellTheIterations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	var kinds []string
	m := after(code("ask_llm('q')"), code(good))
	m.facts = llm.Facts{Window: 100_000, Price: &llm.Price{}}
	cfg := config(m)
	cfg.Trace = dir
	cfg.Progress = func(e ledger.Event) { kinds = append(kinds, fmt.Sprintf("%s %d", e.Kind, e.Turn)) }
	answered(t, cfg)
	want := "run_started 0, turn_started 1, reply 1, snippet 1, turn_started 2, reply 2, " +
		"call_started 2, call 2, snippet 2, turn_started 3, reply 3, snippet 3, answer 3, run_ended 3"
	if got := strings.Join(kinds, ", "); got != want {
		t.Errorf("events: %s\nwant: %s", got, want)
	}
	data, err := os.ReadFile(filepath.Join(dir, trajectory.File))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 4 {
		t.Fatalf("the trajectory has %d lines: %s", len(lines), data)
	}
	holds(t, lines[0], `"environment_type":"rr"`)
	holds(t, lines[2], `"rlm_calls":[{`)
	holds(t, lines[3], `"final_answer":{"reasoning":"The agent said 5."`)
}

// A server's window may be smaller than max_context_chars.
func TestARefusedConversationIsTrimmedAndSentOnceMore(t *testing.T) {
	dull := code("print('.' * 3_000)")
	for _, c := range []struct {
		most     int // messages that the server accepts
		requests []int
		fails    bool
	}{
		{5, []int{1, 3, 5, 7, 3, 9, 3}, false},
		{1, []int{1, 3}, true}, // the last turn cannot be dropped
	} {
		var requests []int
		m := &models{script: []string{dull, dull, dull, dull, code(good)}}
		m.refuse = func(r llm.Request) error {
			if requests = append(requests, len(r.Messages)); len(r.Messages) <= c.most {
				return nil
			}
			return &llm.Error{Kind: llm.ErrContextLength, Model: r.Model, Message: "too long"}
		}
		_, err := reflect.Run(t.Context(), config(m), subject())
		if !slices.Equal(requests, c.requests) || errors.Is(err, llm.ErrContextLength) != c.fails {
			t.Errorf("requests of %d messages, want %d: %v", requests, c.requests, err)
		}
	}
}

// endless holds models whose sub-calls last until their context ends.
type endless struct{ *models }

func (e endless) Resolve(name string) (llm.Model, error) {
	model, err := e.models.Resolve(name)
	model.Provider = e
	return model, err
}

func (e endless) Complete(ctx context.Context, r llm.Request, _ func(string)) (llm.Response, error) {
	if r.Metadata.Purpose == "leaf" {
		<-ctx.Done()
		return llm.Response{}, context.Cause(ctx)
	}
	return llm.Func(e.reply).Complete(ctx, r, nil)
}

func TestTheTimeReservesTheLastAssessment(t *testing.T) {
	for _, c := range []struct {
		last string
		want ledger.Status
	}{{good[len("FINAL(") : len(good)-1], ledger.StatusSynthesised}, {"no idea", ledger.StatusPartial}} {
		t.Run(string(c.want), func(t *testing.T) {
			t.Parallel()
			m := &models{script: []string{code("print(llm_query('endless'))"), c.last}}
			cfg := config(m)
			cfg.Models, cfg.Budget.Wall = endless{m}, 6*time.Second
			outcome := reflected(t, cfg)
			purpose := m.requests[len(m.requests)-1].Metadata.Purpose
			if outcome.Status != c.want || purpose != "synthesis" || len(m.requests) != 2 {
				t.Errorf("%s after %d requests, the last for %s: %s",
					outcome.Status, len(m.requests), purpose, outcome.Reason)
			}
		})
	}
}
