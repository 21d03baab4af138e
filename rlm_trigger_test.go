package rlm_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

func TestTriggersHoldAboveTheirThresholds(t *testing.T) {
	const off = rlm.NoTrigger
	for _, c := range []struct {
		name     string
		triggers rlm.Triggers
		signal   rlm.Signal
		want     rlm.Trigger
	}{
		{name: "nothing"},
		{name: "always", triggers: rlm.Triggers{Always: true}, want: rlm.TriggerAlways},
		{name: "long horizon", signal: rlm.Signal{LongHorizon: true}, want: rlm.TriggerLongHorizon},
		{name: "long horizon, ignored", triggers: rlm.Triggers{NoLongHorizon: true}, signal: rlm.Signal{LongHorizon: true}},
		{name: "output at the threshold", signal: rlm.Signal{OutputChars: 50_000}},
		{name: "output above it", signal: rlm.Signal{OutputChars: 50_001}, want: rlm.TriggerLargeOutput},
		{name: "traces at the threshold", signal: rlm.Signal{Traces: 500}},
		{name: "traces above it", signal: rlm.Signal{Traces: 501}, want: rlm.TriggerManyTraces},
		{name: "nodes at the threshold", signal: rlm.Signal{Nodes: 1_000}},
		{name: "nodes above it", signal: rlm.Signal{Nodes: 1_001}, want: rlm.TriggerManyNodes},
		{name: "own threshold", triggers: rlm.Triggers{Nodes: 7}, signal: rlm.Signal{Nodes: 8}, want: rlm.TriggerManyNodes},
		{name: "the first counts", signal: rlm.Signal{OutputChars: 1e6, Nodes: 1e6}, want: rlm.TriggerLargeOutput},
		{name: "off", triggers: rlm.Triggers{OutputChars: off, Traces: off, Nodes: off}, signal: rlm.Signal{OutputChars: 1e9, Traces: 1e9, Nodes: 1e9}},
	} {
		if got := c.triggers.ShouldTrigger(c.signal); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestTheHookCondensesByARun is the hook of an engine: its run sees the output as its
// context, and one that fails hands on the beginning, never the whole.
func TestTheHookCondensesByARun(t *testing.T) {
	engine, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
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
		if err := os.WriteFile(script, []byte("version: 1\nrules:\n  - "+does+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		task := rlm.Task{Run: rlm.RunConfig{Models: models, Model: "scripted/" + script, MaxTurns: 2}}
		got, err := engine.HookOutput(t.Context(), strings.NewReader(long), rlm.Triggers{}, task)
		if (err == nil) != (got.Outcome.Answer != nil) || got.Trigger != rlm.TriggerLargeOutput || !strings.Contains(got.Text, want) || len(got.Text) > 3_000 {
			t.Errorf("%s: %d characters, %.200q, %v", does, len(got.Text), got.Text, err)
		}
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
		{"off", rlm.NoTrigger, strings.Repeat("x", 1<<20), false},
	} {
		asked := false
		answer := func(_ context.Context, task rlm.Task) (rlm.Outcome, error) {
			asked = true
			input, done, err := task.Contexts[0].Input(t.Context())
			if err != nil {
				return rlm.Outcome{}, err
			}
			if got := input.Text.Size(); got != int64(len(c.output)) {
				t.Errorf("%s: the run sees %d bytes of %d", c.name, got, len(c.output))
			}
			if task.Run.Question != rlm.HookQuestion {
				t.Errorf("%s: the question is %q", c.name, task.Run.Question)
			}
			return rlm.Outcome{Answer: json.RawMessage(`"the report"`)}, done()
		}
		got, err := rlm.Hook(t.Context(), strings.NewReader(c.output), rlm.Triggers{OutputChars: c.threshold}, rlm.Task{}, answer)
		want := c.output
		if c.asked {
			want = "the report"
		}
		if err != nil || asked != c.asked || got.Text != want {
			t.Errorf("%s: asked %t, %.50q, %v", c.name, asked, got.Text, err)
		}
	}
}

func TestATaskThatCannotBeginIsASetupError(t *testing.T) {
	engine, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	for name, task := range map[string]rlm.Task{
		"no registry":  {Run: rlm.RunConfig{Question: "q", Model: "a/b"}},
		"no context":   {Contexts: []rlm.Context{rlm.File("missing")}},
		"empty output": {Contexts: []rlm.Context{rlm.Reader("r", strings.NewReader(""), 10)}},
	} {
		outcome, err := engine.Answer(t.Context(), task)
		var setup *rlm.SetupError
		if !errors.As(err, &setup) || outcome.Status != "failed" || outcome.Reason == "" {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
	}
}
