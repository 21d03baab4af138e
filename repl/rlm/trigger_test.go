package rlm_test

import (
	"testing"

	"github.com/rlmhq/rlm/repl/rlm"
)

func TestShouldTriggerHasFiveConditions(t *testing.T) {
	type situation = rlm.Signal
	for _, c := range []struct {
		name string
		set  rlm.Triggers
		s    situation
		want rlm.Trigger
	}{
		{"nothing", rlm.Triggers{}, situation{}, rlm.TriggerNone},
		{"always", rlm.Triggers{Always: true}, situation{}, rlm.TriggerAlways},
		{"long horizon", rlm.Triggers{}, situation{LongHorizon: true}, rlm.TriggerLongHorizon},
		{"long horizon switched off", rlm.Triggers{NoLongHorizon: true}, situation{LongHorizon: true}, rlm.TriggerNone},
		{"the first counts", rlm.Triggers{}, situation{OutputChars: 1e6, Nodes: 1e6}, rlm.TriggerLargeOutput},
		{"output at the threshold", rlm.Triggers{}, situation{OutputChars: 50_000}, rlm.TriggerNone},
		{"output over it", rlm.Triggers{}, situation{OutputChars: 50_001}, rlm.TriggerLargeOutput},
		{"traces at the threshold", rlm.Triggers{}, situation{Traces: 500}, rlm.TriggerNone},
		{"traces over it", rlm.Triggers{}, situation{Traces: 501}, rlm.TriggerManyTraces},
		{"nodes at the threshold", rlm.Triggers{}, situation{Nodes: 1_000}, rlm.TriggerNone},
		{"nodes over it", rlm.Triggers{}, situation{Nodes: 1_001}, rlm.TriggerManyNodes},
		{"output switched off", rlm.Triggers{OutputChars: rlm.NoTrigger}, situation{OutputChars: 1 << 40}, rlm.TriggerNone},
		{"traces switched off", rlm.Triggers{Traces: rlm.NoTrigger}, situation{Traces: 1 << 40}, rlm.TriggerNone},
		{"nodes switched off", rlm.Triggers{Nodes: rlm.NoTrigger}, situation{Nodes: 1 << 40}, rlm.TriggerNone},
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
