package distill_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/reflect"
)

// TestEveryFormatIsRead reads the samples of all formats. It checks that it finds as many traces as
// a reflection does, and never takes a line or a message for a trace.
func TestEveryFormatIsRead(t *testing.T) {
	names, err := filepath.Glob("../internal/agenttrace/testdata/forms/*")
	if err != nil || len(names) < 25 {
		t.Fatalf("there are %d samples: %v", len(names), err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		subject, err := reflect.ParseTrace(data, "auto")
		if err != nil {
			t.Fatal(err)
		}
		format, _, _ := strings.Cut(subject.Found, ",")
		want := 1
		if several := regexp.MustCompile(`(\d+) traces`).FindStringSubmatch(subject.Found); several != nil {
			want, _ = strconv.Atoi(several[1])
		}

		for _, given := range []string{"auto", format} {
			t.Run(fmt.Sprintf("%.60s", given), func(t *testing.T) {
				c, err := distill.Parse(strings.NewReader(string(data)), given)
				if n := len(c.Failures) + c.Passed; err != nil || n != want || c.Formats[format] != want {
					t.Errorf("%s as %s: %d traces of %v, want %d of %s: %v",
						filepath.Base(name), given, n, c.Formats, want, format, err)
				}
				for _, f := range c.Failures {
					if !json.Valid(f.Trace) || f.Trace[0] != '{' {
						t.Errorf("%s: the trace of %s is %.100s", name, f.ID, f.Trace)
					}
				}
			})
		}
	}
}

// TestFormatsTellFailures checks traces that show in different ways that their run failed.
func TestFormatsTellFailures(t *testing.T) {
	const say = `{"role": "user", "content": "Do it."}, {"role": "assistant", "content": "Done."}`
	for name, c := range map[string]struct{ text, want string }{
		"messages":        {`[` + say + `]`, "unmarked"},
		"marked messages": {`{"messages": [` + say + `], "success": false, "error": "KeyError: 'a'"}`, "KeyError: 'a'"},
		"passed messages": {`{"messages": [` + say + `], "passed": true}`, "passed"},
		"tau":             {`{"traj": [` + say + `], "reward": 0.0, "info": {}}`, "reward: 0.0"},
		"tau 2": {`{"simulations": [{"id": "s1", "messages": [` + say[:len(say)-1] + `, "tool_calls": [` +
			`{"id": "1", "name": "f", "arguments": {}, "requestor": "assistant"}]}], "reward_info": {"reward": 0}, ` +
			`"termination_reason": "max_steps"}]}`, "s1 reward: 0, ended by max_steps"},
		"swe-agent": {`{"trajectory": [{"action": "ls", "observation": "a"}], "history": [], ` +
			`"info": {"exit_status": "exit_cost"}}`, "exit_cost"},
		"swe-agent's success": {`{"trajectory": [{"action": "ls", "observation": "a"}], "history": [], ` +
			`"info": {"exit_status": "submitted"}}`, "passed"},
		"mini-swe-agent": {`{"messages": [` + say + `], "info": {"exit_status": "LimitsExceeded", ` +
			`"mini_version": "1"}, "trajectory_format": "mini-swe-agent-1"}`, "LimitsExceeded"},
		"claude-code": {
			`{"type": "user", "session_id": "s", "message": {"role": "user", "content": "Do it."}}` + "\n" +
				`{"type": "result", "subtype": "error_max_turns", "is_error": true}`, "error_max_turns",
		},
		"codex": {
			`{"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Do it."}}` + "\n" +
				`{"type": "event_msg", "payload": {"type": "error", "message": "stream disconnected"}}`,
			"stream disconnected",
		},
		"openclaw": {
			`{"type": "session", "id": "s", "version": 3}` + "\n" +
				`{"type": "message", "message": {"role": "user", "content": "Do it."}}` + "\n" +
				`{"type": "message", "message": {"role": "assistant", "content": "", "stopReason": "error", ` +
				`"errorMessage": "overloaded"}}`, "overloaded",
		},
		"rlm": {
			`{"kind": "run_started", "text": "Do it."}` + "\n" +
				`{"type": "metadata", "root_model": "m"}` + "\n" +
				`{"type": "iteration", "iteration": 1, "prompt": [` + say + `], "response": "r"}` + "\n" +
				`{"kind": "run_ended", "status": "partial", "error": "the budget is used up"}`, "the budget is used up",
		},
		"browser-use": {`{"history": [{"model_output": {}, "state": {}, "result": [{"error": "no such tab"}]}, ` +
			`{"model_output": {}, "state": {}, "result": [{"is_done": true, "success": false, ` +
			`"extracted_content": "I could not."}]}]}`, "no such tab"},
		"otlp": {`{"resourceSpans": [{"scopeSpans": [{"spans": [` +
			`{"traceId": "t", "spanId": "a", "name": "agent", "status": {"code": 2}, "attributes": [` +
			`{"key": "input.value", "value": {"stringValue": "Do it."}}]},` +
			`{"traceId": "t", "spanId": "b", "parentSpanId": "a", "name": "search", "status": {"code": 2, ` +
			`"message": "TimeoutError: 30 s"}, "attributes": []}]}]}]}`, "t search TimeoutError: 30 s"},
		"otlp's success": {`{"resourceSpans": [{"scopeSpans": [{"spans": [` +
			`{"traceId": "t", "spanId": "a", "name": "agent", "status": {"code": 1}, "attributes": [` +
			`{"key": "input.value", "value": {"stringValue": "Do it."}}]}]}]}]}`, "passed"},
		"langfuse": {`{"id": "t", "name": "agent", "observations": [{"id": "o", "traceId": "t", "type": "SPAN", ` +
			`"name": "run", "input": "Do it.", "startTime": "2026-01-01T00:00:00Z"}], "level": "ERROR", ` +
			`"statusMessage": "no quota"}`, "t agent no quota"},
		"responses": {`{"object": "response", "status": "incomplete", "incomplete_details": {"reason": ` +
			`"max_output_tokens"}, "output": [{"type": "message", "role": "assistant", "content": [` +
			`{"type": "output_text", "text": "So"}]}]}`, "max_output_tokens"},
	} {
		corpus, err := distill.Parse(strings.NewReader(c.text), "auto")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := "passed"
		for _, f := range corpus.Failures {
			got = strings.TrimPrefix(strings.Join(strings.Fields(f.ID+" "+f.Component+" "+f.Error), " "), "trace 1 ")
		}
		if corpus.Unmarked > 0 {
			got = "unmarked"
		}
		if got != c.want || len(corpus.Failures)+corpus.Passed != 1 {
			t.Errorf("%s: got %q, %d failures and %d passed, want %q of one trace, formats %v",
				name, got, len(corpus.Failures), corpus.Passed, c.want, corpus.Formats)
		}
	}
}

// TestALogThatCannotBeReadIsAnError checks that the lines of an unreadable log are not taken for
// traces.
func TestALogThatCannotBeReadIsAnError(t *testing.T) {
	const line = `{"type": "user", "session_id": "s", "message": {"role": "user", "content": "Do it."}}` + "\n"
	for says, text := range map[string]string{
		"line 2.message: expected an object": line + `{"type": "user", "message": 1}`,
		"more than 33554432":                 line + strings.Repeat(" ", 33<<20),
	} {
		t.Run(says, func(t *testing.T) {
			_, err := distill.Parse(strings.NewReader(text), "auto")
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want %q", err, says)
			}
		})
	}
	if _, err := distill.Parse(strings.NewReader("{}"), "rubbish"); err == nil ||
		!strings.Contains(err.Error(), `unknown trace format "rubbish"`) {
		t.Errorf("got %v", err)
	}
}

// TestALongTraceIsShortened checks that, if a trace has too many steps, the snippets of a run
// receive the last steps and the number of omitted steps.
func TestALongTraceIsShortened(t *testing.T) {
	var log strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&log, `{"type": "user", "session_id": "s", "message": {"role": "user", "content": "%d %s"}}`+"\n",
			i, strings.Repeat("long ", 100))
	}
	log.WriteString(`{"type": "result", "subtype": "error_during_execution", "is_error": true}` + "\n")
	c, err := distill.Parse(strings.NewReader(log.String()), "auto")
	if err != nil || len(c.Failures) != 1 {
		t.Fatalf("%d failures: %v", len(c.Failures), err)
	}

	var trace struct {
		LeftOut int `json:"steps_left_out"`
		Error   string
		Steps   []struct{ Thought string }
	}
	if err := json.Unmarshal(c.Failures[0].Trace, &trace); err != nil {
		t.Fatal(err)
	}
	if n := len(trace.Steps); len(c.Failures[0].Trace) > 1<<20 || n == 0 || n+trace.LeftOut != 30_000 ||
		!strings.HasPrefix(trace.Steps[n-1].Thought, "29999 ") || trace.Error != "error_during_execution" {
		t.Errorf("%d bytes, %d steps and %d left out, error %q",
			len(c.Failures[0].Trace), n, trace.LeftOut, trace.Error)
	}
}
