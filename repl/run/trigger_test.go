package run_test

import (
	"testing"

	"github.com/rlmhq/rlm/repl/run"
)

func TestShouldTriggerHasFiveConditions(t *testing.T) {
	type situation = run.Signal
	for _, c := range []struct {
		name string
		set  run.Triggers
		s    situation
		want run.Trigger
	}{
		{"nothing", run.Triggers{}, situation{}, run.TriggerNone},
		{"always", run.Triggers{Always: true}, situation{}, run.TriggerAlways},
		{"long horizon", run.Triggers{}, situation{LongHorizon: true}, run.TriggerLongHorizon},
		{"long horizon switched off", run.Triggers{NoLongHorizon: true}, situation{LongHorizon: true}, run.TriggerNone},
		{"the first counts", run.Triggers{}, situation{OutputChars: 1e6, Nodes: 1e6}, run.TriggerLargeOutput},
		{"output at the threshold", run.Triggers{}, situation{OutputChars: 50_000}, run.TriggerNone},
		{"output over it", run.Triggers{}, situation{OutputChars: 50_001}, run.TriggerLargeOutput},
		{"traces at the threshold", run.Triggers{}, situation{Traces: 500}, run.TriggerNone},
		{"traces over it", run.Triggers{}, situation{Traces: 501}, run.TriggerManyTraces},
		{"nodes at the threshold", run.Triggers{}, situation{Nodes: 1_000}, run.TriggerNone},
		{"nodes over it", run.Triggers{}, situation{Nodes: 1_001}, run.TriggerManyNodes},
		{"output switched off", run.Triggers{OutputChars: run.NoTrigger}, situation{OutputChars: 1 << 40}, run.TriggerNone},
		{"traces switched off", run.Triggers{Traces: run.NoTrigger}, situation{Traces: 1 << 40}, run.TriggerNone},
		{"nodes switched off", run.Triggers{Nodes: run.NoTrigger}, situation{Nodes: 1 << 40}, run.TriggerNone},
		{"a threshold of one's own", run.Triggers{OutputChars: 10}, situation{OutputChars: 11}, run.TriggerLargeOutput},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := run.Config{Triggers: c.set}
			if got := cfg.ShouldTrigger(c.s); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
