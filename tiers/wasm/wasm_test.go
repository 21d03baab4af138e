package wasm_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	tiertest.Run(t, warmTier(t), tiertest.Options{Patience: 10 * time.Minute})
}
