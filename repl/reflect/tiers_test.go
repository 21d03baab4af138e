package reflect_test

import (
	"testing"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// TestOpenIsNoneInEveryTier checks open and the other names that prompts rely on.
//
// Source 000, repl/reflect/namespace.go: open is None, in every tier.
func TestOpenIsNoneInEveryTier(t *testing.T) {
	const source = "print({f for f in (open, eval, exec, compile, input, __import__, globals, locals)})"
	for _, tier := range shared.Tiers() {
		name := tier.Info().Name
		if name == "interp" {
			continue // its Python lacks the classes that a trace needs
		}
		t.Run(name, func(t *testing.T) {
			tiertest.Require(t, name, tier.Probe(t.Context()))
			m := &models{script: []string{code(source), code(good)}}
			cfg := config(m)
			cfg.Open = shared.Opener(router.Policy{Pin: name})
			answered(t, cfg)
			holds(t, m.told(t, 1), "{None}")
		})
	}
}
