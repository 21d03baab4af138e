package interp_test

import (
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// TestSuite runs those of the suite's Python snippets that the tier accepts. Go has separate tests.
//
// With the race detector, a worker starts with up to 160 MiB instead of 60 MiB, which would exhaust
// the suite's default limit.
func TestSuite(t *testing.T) {
	skip.Short(t, "tier wasm runs the same suite")
	tiertest.Run(t, warmTier(t), tiertest.Options{MinAccepted: 40, Memory: 192 << 20})
}
