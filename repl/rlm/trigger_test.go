package rlm_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/rlm"
)

func TestShouldTriggerHasFiveConditions(t *testing.T) {
	type situation = rlm.Situation
	for _, c := range []struct {
		name string
		set  rlm.Triggers
		s    situation
		want rlm.Trigger
	}{
		{"nothing", rlm.Triggers{}, situation{}, rlm.TriggerNone},
		{"always", rlm.Triggers{Always: true}, situation{}, rlm.TriggerAlways},
		{"long horizon", rlm.Triggers{}, situation{LongHorizon: true}, rlm.TriggerLongHorizon},
		{"output at the threshold", rlm.Triggers{}, situation{OutputChars: 50_000}, rlm.TriggerNone},
		{"output over it", rlm.Triggers{}, situation{OutputChars: 50_001}, rlm.TriggerLargeOutput},
		{"traces at the threshold", rlm.Triggers{}, situation{Traces: 500}, rlm.TriggerNone},
		{"traces over it", rlm.Triggers{}, situation{Traces: 501}, rlm.TriggerManyTraces},
		{"nodes at the threshold", rlm.Triggers{}, situation{Nodes: 1_000}, rlm.TriggerNone},
		{"nodes over it", rlm.Triggers{}, situation{Nodes: 1_001}, rlm.TriggerManyNodes},
		{"output switched off", rlm.Triggers{NoLargeOutput: true}, situation{OutputChars: 1 << 40}, rlm.TriggerNone},
		{"traces switched off", rlm.Triggers{NoManyTraces: true}, situation{Traces: 1 << 40}, rlm.TriggerNone},
		{"nodes switched off", rlm.Triggers{NoManyNodes: true}, situation{Nodes: 1 << 40}, rlm.TriggerNone},
		{"a threshold of one's own", rlm.Triggers{OutputChars: 10}, situation{OutputChars: 11}, rlm.TriggerLargeOutput},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := rlm.Config{Triggers: c.set}
			if got := cfg.ShouldTrigger(c.s); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheHookPassesSmallOutputAndCondensesLarge(t *testing.T) {
	m := &models{script: []string{code("FINAL(f'{context.count(chr(10))} lines')")}}
	small, err := rlm.LargeOutput(t.Context(), config(m), rlm.HookInput{Output: text("all good\n")})
	if err != nil || small.Text != "all good\n" || small.Trigger != rlm.TriggerNone || len(m.requests) != 0 {
		t.Fatalf("small: %+v, %v", small, err)
	}
	long := text(strings.Repeat("a line\n", 10_000))
	large, err := rlm.LargeOutput(t.Context(), config(m), rlm.HookInput{Output: long, Tool: "grep", Task: "find the bug"})
	if err != nil || large.Text != "10000 lines" || large.Trigger != rlm.TriggerLargeOutput {
		t.Fatalf("large: %+v, %v", large, err)
	}
	if asked := m.requests[0].Messages[1].Content; !strings.Contains(asked, `"grep"`) || !strings.Contains(asked, "find the bug") {
		t.Errorf("the question was %q", asked)
	}
	// A run that fails hands on the beginning, with a note, and never the whole.
	failed, err := rlm.LargeOutput(t.Context(), config(m), rlm.HookInput{Output: long})
	if err == nil || len(failed.Text) > 3_000 || !strings.Contains(failed.Text, "70000 characters") {
		t.Errorf("failed: %d characters, %v", len(failed.Text), err)
	}
}
