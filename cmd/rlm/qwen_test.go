package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/ledger"
)

// qwenHelp are the instructions that a model of this size needs; see docs/start/local-model.md.
const qwenHelp = "The variable context already holds the whole text. Never assign to it. Work on all of it. " +
	"Give the answer with FINAL(...) instead of print(...), for example FINAL(len(context))."

// qwenTasks are questions about qwenLog, which is longer than the model's window.
var qwenTasks = []struct{ question, kind, want string }{
	{"How many lines of context end with '| ERROR'?", "int", "858"},
	{"How many characters does context have?", "int", strconv.Itoa(len(qwenLog()))},
	{"How many lines of context contain the word 'refund'?", "int", "545"},
	{"What is the sum of all numbers that follow 'amount='?", "int", "17997000"},
	{"Which name follows 'user=' in the last line of context?", "str", `"dora"`},
}

// qwenLog returns 6,000 lines.
func qwenLog() string {
	users, levels := []string{"ann", "bob", "cem", "dora"}, []string{"INFO", "WARN"}
	var b strings.Builder
	for i := range 6000 {
		level, topic := levels[i%2], "order"
		if i%7 == 0 {
			level = "ERROR"
		}
		if i%11 == 0 && i > 0 {
			topic = "refund"
		}
		fmt.Fprintf(&b, "%04d %s user=%s amount=%d | %s\n", i, topic, users[i%4], i, level)
	}
	return b.String()
}

// TestQwenLeadsLoops lets a real model of 1.5 billion parameters answer questions with code. Such a
// model is often wrong, and its replies differ between processors. The test therefore only checks
// that every run ends with an answer of the right type or with none, that the model runs code, and
// that it is right at least twice.
func TestQwenLeadsLoops(t *testing.T) {
	python, weights := skip.WithoutQwen(t)
	server := startLlamaCPP(t, python, weights)
	context := write(t, "orders.log", []byte(qwenLog()))

	right, ranCode := 0, 0
	for i, task := range qwenTasks {
		dir := t.TempDir()
		cmd := command(t, dir, "ask", task.question, "--context", context, "--bypass", "0", "--model", "openai/qwen",
			"--temperature", "0", "--max-turns", "4", "--preview=false", "--system", qwenHelp,
			"--output-type", task.kind, "--json", "--quiet", "--no-keep", "--trace", "trace")
		cmd.Env = append(cmd.Environ(), "OPENAI_BASE_URL="+server.address+"/v1", "OPENAI_API_KEY=unused")
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != 0 && code != 7 { // 7 means no answer
			t.Fatalf("task %d: exit code %d: %v\n%s", i, code, err, out)
		}

		var outcome rlm.Outcome
		if err := json.Unmarshal(out, &outcome); err != nil {
			t.Fatalf("task %d: %v: %s", i, err, out)
		}
		if (outcome.Status == ledger.StatusAnswered) != (len(outcome.Answer) > 0) {
			t.Errorf("task %d: %s with the answer %s", i, outcome.Status, outcome.Answer)
		}
		if string(outcome.Answer) == task.want {
			right++
		}
		events, err := os.ReadFile(filepath.Join(dir, "trace", "events.jsonl"))
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(events, []byte(`"kind":"snippet"`)) {
			ranCode++
		}
		t.Logf("task %d: %s, %s, want %s, %d calls", i, outcome.Status, outcome.Answer, task.want, outcome.Spent.Calls)
	}
	if right < 2 || ranCode < 3 {
		t.Errorf("%d of %d answers are right, %d runs had code", right, len(qwenTasks), ranCode)
	}
}
