package interp_test

import (
	"testing"

	"github.com/rlmhq/rlm/internal/testing/escapes"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// TestEscape runs the shared corpus of attacks, which is in Python. The attacks in Go are in
// internal/hostile.
func TestEscape(t *testing.T) {
	skip.Short(t, "make escape runs it")
	skip.UnderRace(t)
	escapes.Run(t, warmTier(t))
}
