package wasm_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestEscape(t *testing.T) { tiertest.Escape(t, warmTier(t)) }

// TestEscapeByHostCallsWithoutALimit is the control of the attacks by host calls:
// where the limit is lifted and the function is offered, too many calls arrive.
func TestEscapeByHostCallsWithoutALimit(t *testing.T) {
	tier := warmTier(t)
	for _, c := range tiertest.EscapeCases(t) {
		if c.Class != "hostcalls" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			verdict := tiertest.TryEscape(t, tier, c, func(cfg *tiers.Config) {
				cfg.Limits.HostCalls = 0
				cfg.Functions = append(cfg.Functions, tiers.Function{Name: "secret_function"})
			})
			if !strings.HasPrefix(verdict, tiertest.Escaped) {
				t.Errorf("without a limit it is %s", verdict)
			}
		})
	}
}
