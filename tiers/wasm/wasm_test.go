package wasm_test

import (
	"log"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/testcache"
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

// TestSuiteOnWazero is for systems where the default engine is another one.
func TestSuiteOnWazero(t *testing.T) {
	skip.Short(t, "make unraced runs it")
	skip.UnderRace(t)
	tiertest.Run(t, warmTierOf(t, "wazero"), tiertest.Options{Patience: 10 * time.Minute})
}
