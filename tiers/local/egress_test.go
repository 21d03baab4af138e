package local_test

import (
	"os"
	"testing"

	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestEgress(t *testing.T) {
	usual(t)
	tiertest.Egress(t, newTier(t, local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: -1}))
}
