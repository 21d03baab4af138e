package wasm_test

import (
	"log"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestMain(m *testing.M) {
	if err := testcache.Use(); err != nil {
		log.Fatal(err)
	}
	goleak.VerifyTestMain(m)
}

func TestSuite(t *testing.T) {
	tiertest.Run(t, warmTier(t), tiertest.Options{Patience: 10 * time.Minute})
}

// TestSuiteOnWazero runs the suite on systems with a different default engine. The guest is the
// same; TestSuite runs its attacks in separate sandboxes.
func TestSuiteOnWazero(t *testing.T) {
	skip.Short(t, "make unraced runs it")
	skip.UnderRace(t)
	tiersuite.Run(t, warmTierOf(t, "wazero"), tiersuite.Options{
		Patience: 10 * time.Minute, KnownGuest: true, KnownProcess: true,
	})
}
