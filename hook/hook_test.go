package hook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/hook"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/run"
)

func TestTriggersHoldAboveTheirThresholds(t *testing.T) {
	const off = -1
	for _, c := range []struct {
		name     string
		triggers run.Triggers
		signal   run.Signal
		want     run.Trigger
	}{
		{name: "nothing"},
		{name: "always", triggers: run.Triggers{Always: true}, want: "always"},
		{name: "long horizon", signal: run.Signal{LongHorizon: true}, want: "long_horizon"},
		{
			name: "long horizon, ignored", triggers: run.Triggers{NoLongHorizon: true},
			signal: run.Signal{LongHorizon: true},
		},
		{name: "output at the threshold", signal: run.Signal{OutputChars: 50_000}},
		{name: "output above it", signal: run.Signal{OutputChars: 50_001}, want: "large_output"},
		{name: "traces at the threshold", signal: run.Signal{Traces: 500}},
		{name: "traces above it", signal: run.Signal{Traces: 501}, want: "many_traces"},
		{name: "nodes at the threshold", signal: run.Signal{Nodes: 1_000}},
		{name: "nodes above it", signal: run.Signal{Nodes: 1_001}, want: "many_nodes"},
		{
			name: "own threshold", triggers: run.Triggers{Nodes: 7}, signal: run.Signal{Nodes: 8},
			want: "many_nodes",
		},
		{name: "the first counts", signal: run.Signal{OutputChars: 1e6, Nodes: 1e6}, want: "large_output"},
		{
			name: "off", triggers: run.Triggers{OutputChars: off, Traces: off, Nodes: off},
			signal: run.Signal{OutputChars: 1e9, Traces: 1e9, Nodes: 1e9},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.triggers.ShouldTrigger(c.signal); got != c.want {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		})
	}
}

// TestTheHookHeedsWhatItsCallerKnows checks that even a small output triggers a run if it belongs
// to a long task or contains many nodes.
func TestTheHookHeedsWhatItsCallerKnows(t *testing.T) {
	for want, signal := range map[run.Trigger]run.Signal{
		"":             {Nodes: 1_000},
		"many_nodes":   {Nodes: 1_001},
		"long_horizon": {LongHorizon: true},
	} {
		task := rlm.Task{Signal: signal}
		hooked, err := hook.Output(t.Context(), strings.NewReader("small"), task,
			func(context.Context, rlm.Task) (rlm.Outcome, error) {
				return rlm.Outcome{Answer: json.RawMessage(`"seen"`)}, nil
			})
		if err != nil || hooked.Trigger != want || (hooked.Text == "seen") != (want != "") {
			t.Errorf("%+v: %+v, %v", signal, hooked, err)
		}
	}
}

// TestTheHookCondensesByARun checks that the run of an engine's hook has the output as its context,
// and that a failed run passes on only the beginning of the output.
func TestTheHookCondensesByARun(t *testing.T) {
	engine := newEngine(t)
	models, err := providers.New(providers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer models.Close()
	script := filepath.Join(t.TempDir(), "script.yaml")
	long := strings.Repeat("a line\n", 10_000)
	for does, want := range map[string]string{
		"reply: |\n      ```repl\n      FINAL(f'{context.count(chr(10))} lines')\n      ```": "10000 lines",
		"error: {kind: server, message: gone}":                                               "has no answer: ",
	} {
		t.Run(fmt.Sprintf("%.60s", does), func(t *testing.T) {
			rules := "version: 1\nrules:\n  - " + does + "\n"
			if err := os.WriteFile(script, []byte(rules), 0o600); err != nil {
				t.Fatal(err)
			}
			task := rlm.Task{
				Config: run.Config{Models: models, Model: "scripted/" + script, MaxTurns: 2},
			}
			got, err := hook.Output(t.Context(), strings.NewReader(long), task, engine.Ask)
			if (err == nil) != (got.Outcome.Answer != nil) || got.Trigger != "large_output" ||
				!strings.Contains(got.Text, want) ||
				len(got.Text) > 3_000 {
				t.Errorf("%s: %d characters, %.200q, %v", does, len(got.Text), got.Text, err)
			}
		})
	}
}

func TestTheHookReadsNoMoreThanItNeedsAndLosesNothing(t *testing.T) {
	for _, c := range []struct {
		name      string
		threshold int64
		output    string
		asked     bool
	}{
		{"empty", 1, "", false},
		{"small", 10, "0123456789", false},
		{"one more", 10, "0123456789a", true},
		{"wide and small", 10, strings.Repeat("\U0001F600", 10), false},
		{"wide and large", 10, strings.Repeat("\U0001F600", 11), true},
		{"much larger", 10, strings.Repeat("x", 1<<20), true},
		{"not UTF-8", 3, "\xff\xff\xff\xff", true},
		{"off", -1, strings.Repeat("x", 1<<20), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := false
			answer := func(_ context.Context, task rlm.Task) (rlm.Outcome, error) {
				asked = true
				if got := sizeOf(t, task.Contexts[0]); got != len(c.output) {
					t.Errorf("%s: the run sees %d bytes of %d", c.name, got, len(c.output))
				}
				if !strings.HasPrefix(task.Config.Question, "This is the output of a tool") {
					t.Errorf("%s: the question is %q", c.name, task.Config.Question)
				}
				return rlm.Outcome{Answer: json.RawMessage(`"the report"`)}, nil
			}
			task := rlm.Task{Config: run.Config{Triggers: run.Triggers{OutputChars: c.threshold}}}
			got, err := hook.Output(t.Context(), strings.NewReader(c.output), task, answer)
			want := c.output
			if c.asked {
				want = "the report"
			}
			if err != nil || asked != c.asked || got.Text != want {
				t.Errorf("%s: asked %t, %.50q, %v", c.name, asked, got.Text, err)
			}
		})
	}
}

// sizeOf returns the size of a context, in bytes.
func sizeOf(t *testing.T, c rlm.Context) int {
	t.Helper()
	session, err := newEngine(t).Open(t.Context(), rlm.SessionConfig{Contexts: []rlm.Context{c}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Run(t.Context(), "n = len(context.encode(errors='surrogateescape'))"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := session.Get(t.Context(), "n", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func newEngine(t *testing.T) *rlm.Engine {
	t.Helper()
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() }) // an error no longer matters
	return engine
}
