package reflect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// TestTheNamespaceFollowsTheSession checks that a session that moves to another sandbox keeps the
// reflection's namespace.
func TestTheNamespaceFollowsTheSession(t *testing.T) {
	for _, tier := range shared.Tiers() {
		if tier.Info().Name == "local" {
			tiertest.Require(t, "local", tier.Probe(t.Context()))
		}
	}
	m := &models{script: []string{
		code("kept = [1]\nsteps = trace.steps"),
		code(
			"import subprocess\nprint(subprocess.run(['echo', 'out'], " +
				"capture_output=True).stdout)\nprint('moved with', kept, len(steps), " +
				"trace.summary(), traces['question'], ask_llm('q'))",
		),
		code(
			"print('then', open, kept, getattr is safe_getattr, trace.get_errors() == steps, skillbook[:6])",
		),
		code(good),
	}}
	cfg := config(m)
	cfg.Open = shared.Opener(router.Policy{AllowLocal: true})
	var ran []string
	cfg.Progress = func(e ledger.Event) {
		if e.Kind == ledger.EventSnippet {
			ran = append(ran, e.Tier)
		}
	}
	answered(t, cfg)
	if got := strings.Join(ran, " "); got != "wasm local local local" {
		t.Errorf("the snippets ran in %s", got)
	}
	holds(t, m.told(t, 2), "moved with [1] 1 Trace of 1 steps", "What is 2+2? re: q")
	holds(t, m.told(t, 3), "then None [1] True True [math-")
}

// TestALostSandboxIsMadeWhole checks that a snippet that breaks its interpreter permanently loses
// its own variables, but not those of the reflection.
func TestALostSandboxIsMadeWhole(t *testing.T) {
	m := after(
		code("import ctypes\nctypes.string_at(0)"),
		code("print('still', trace.summary(), len(traces), open)"), code(good),
	)
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

// TestVariablesOfAReflectionComeBack checks that the reflection's variables are restored after a
// snippet is killed, which may lose all variables.
func TestVariablesOfAReflectionComeBack(t *testing.T) {
	m := &models{script: []string{
		code(
			"while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
		),
		code("print('back', trace.summary(), len(traces), skillbook[:6], open)"),
		code(good),
	}}
	cfg := config(m)
	cfg.Timeout = 2 * time.Second
	answered(t, cfg)
	holds(t, m.told(t, 1), "Variables may be gone")
	holds(t, m.told(t, 2), "back Trace of 1 steps", "4 [math- None")
}

func TestWithoutATierNothingIsAsked(t *testing.T) {
	m := after(code(good))
	cfg := config(m)
	cfg.Open = shared.Opener(router.Policy{MinIsolation: tiers.IsolationKernel})
	outcome, err := reflect.Run(t.Context(), cfg, subject())
	if !errors.Is(err, router.ErrNoTier) || outcome.Status != ledger.StatusFailed ||
		len(m.requests) != 0 {
		t.Errorf("it ended as %+v, %v, after %d requests", outcome, err, len(m.requests))
	}
}
