package wasm_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/escapes"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

func TestEscape(t *testing.T) {
	skip.Short(t, "make escape runs it")
	skip.UnderRace(t)
	escapes.Run(t, warmTier(t))
}

// TestEscapeOnWazero runs the attacks under wazero on systems with a different default engine.
func TestEscapeOnWazero(t *testing.T) {
	skip.Short(t, "make unraced runs it")
	skip.UnderRace(t)
	escapes.RunFew(t, warmTierOf(t, "wazero"), escapes.KnownProcess)
}

// TestEscapeByHostCallsWithoutALimit is the control of the attacks by host calls: if the limit
// is lifted and the function is offered, too many calls arrive.
func TestEscapeByHostCallsWithoutALimit(t *testing.T) {
	skip.UnderRace(t)
	tier := warmTier(t)
	for _, c := range escapes.Cases(t) {
		if c.Class != "hostcalls" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			verdict := escapes.Try(t, tier, c, func(cfg *tiers.Config, _ string) {
				cfg.Limits.HostCalls = 0
				cfg.Functions = append(cfg.Functions, tiers.Function{Name: "secret_function"})
			})
			if !strings.HasPrefix(verdict, escapes.Escaped) {
				t.Errorf("without a limit it is %s", verdict)
			}
		})
	}
}
