package rr_test

import (
	"testing"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// TestTheNamespaceFollowsTheSession: a session that moves to another sandbox keeps
// what a reflection has.
func TestTheNamespaceFollowsTheSession(t *testing.T) {
	for _, tier := range shared.Tiers() {
		if tier.Info().Name == "local" {
			tiertest.Require(t, "local", tier.Probe(t.Context()))
		}
	}
	m := &models{script: []string{
		code("kept = [1]\nsteps = trace.steps"),
		code("import subprocess\nprint('moved with', kept, len(steps), trace.summary(), traces['question'], ask_llm('q'))"),
		code("print('then', open, kept, getattr is safe_getattr, trace.get_errors() == steps, skillbook[:6])"),
		code(good),
	}}
	cfg := config(m)
	cfg.Open = shared.Opener(router.Policy{AllowLocal: true})
	answered(t, cfg)
	holds(t, m.told(t, 2), "moved with [1] 1 Trace of 1 steps", "What is 2+2? re: q")
	holds(t, m.told(t, 3), "then None [1] True True [math-")
}

// TestALostSandboxIsMadeWhole: a snippet that breaks its interpreter for good loses its
// variables, not those of the reflection.
func TestALostSandboxIsMadeWhole(t *testing.T) {
	m := after(code("import ctypes\nctypes.string_at(0)"), code("print('still', trace.summary(), len(traces), open)"), code(good))
	cfg := config(m)
	for _, tier := range shared.Tiers() {
		if tier.Info().Name == "local" {
			tiertest.Require(t, "local", tier.Probe(t.Context()))
		}
	}
	cfg.Open = shared.Opener(router.Policy{Pin: "local", AllowLocal: true})
	answered(t, cfg)
	holds(t, m.told(t, 2), "brought its interpreter down")
	holds(t, m.told(t, 3), "still Trace of 1 steps", "4 None")
}
