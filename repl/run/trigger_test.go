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
		{"nothing", run.Triggers{}, situation{}, ""},
		{"always", run.Triggers{Always: true}, situation{}, "always"},
		{"long horizon", run.Triggers{}, situation{LongHorizon: true}, "long_horizon"},
		{"long horizon switched off", run.Triggers{NoLongHorizon: true}, situation{LongHorizon: true}, ""},
		{"the first counts", run.Triggers{}, situation{OutputChars: 1e6, Nodes: 1e6}, "large_output"},
		{"output at the threshold", run.Triggers{}, situation{OutputChars: 50_000}, ""},
		{"output over it", run.Triggers{}, situation{OutputChars: 50_001}, "large_output"},
		{"traces at the threshold", run.Triggers{}, situation{Traces: 500}, ""},
		{"traces over it", run.Triggers{}, situation{Traces: 501}, "many_traces"},
		{"nodes at the threshold", run.Triggers{}, situation{Nodes: 1_000}, ""},
		{"nodes over it", run.Triggers{}, situation{Nodes: 1_001}, "many_nodes"},
		{"output switched off", run.Triggers{OutputChars: -1}, situation{OutputChars: 1 << 40}, ""},
		{"traces switched off", run.Triggers{Traces: -1}, situation{Traces: 1 << 40}, ""},
		{"nodes switched off", run.Triggers{Nodes: -1}, situation{Nodes: 1 << 40}, ""},
		{"a threshold of one's own", run.Triggers{OutputChars: 10}, situation{OutputChars: 11}, "large_output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := run.Config{Triggers: c.set}
			if got := cfg.Triggers.ShouldTrigger(c.s); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
