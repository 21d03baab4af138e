package interp_test

import (
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// TestSuite runs the part of the suite's Python that the tier accepts. Its Go has its own tests:
// the suite's snippets are Python.
//
// With the race detector, a worker begins with up to 160 MiB instead of 60, which leaves nothing
// of the suite's own limit.
func TestSuite(t *testing.T) {
	skip.Short(t, "tier wasm runs the same suite")
	tiertest.Run(t, warmTier(t), tiertest.Options{MinAccepted: 40, Memory: 192 << 20})
}
