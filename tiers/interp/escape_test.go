package interp_test

import (
	"testing"

	"github.com/rlmhq/rlm/tiers/tiertest"
)

// TestEscape runs the shared corpus, which is Python. The tier's Go has attacks of
// its own, see internal/hostile.
func TestEscape(t *testing.T) { tiertest.Escape(t, warmTier(t)) }
