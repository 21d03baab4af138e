package interp_test

import (
	"testing"

	"github.com/rlmhq/rlm/tiers/tiertest"
)

// TestSuite runs what the tier accepts of the suite's Python. Its Go has tests
// of its own: the suite's snippets are Python.
func TestSuite(t *testing.T) {
	tiertest.Run(t, warmTier(t), tiertest.Options{MayReject: true, AtLeast: 40})
}
