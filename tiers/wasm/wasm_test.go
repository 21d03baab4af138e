package wasm_test

import (
	"log"
	"testing"
	"time"

	"go.uber.org/goleak"

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
