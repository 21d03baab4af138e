//go:build unix

package local_test

import (
	"os"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/tiers/local"
)

func TestEgress(t *testing.T) {
	usual(t)
	tiersuite.Egress(t, newTier(t, local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: -1}))
}
