package python

import (
	"context"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns an analyser, and the tier of its sandboxes.
func open(tb testing.TB) (*Analyser, tiers.Tier) {
	tb.Helper()
	tier := wasm.New(wasm.Options{CacheDir: testcache.Dir()})
	a := New(tier)
	tb.Cleanup(func() {
		if err := a.Close(); err != nil {
			tb.Error(err)
		}
		if err := tier.Close(); err != nil {
			tb.Error(err)
		}
	})
	return a, tier
}

func needs(tb testing.TB, a *Analyser, source string) *router.Needs {
	tb.Helper()
	v, err := a.Analyse(context.Background(), source)
	if err != nil {
		tb.Fatal(err)
	}
	if v.Needs == nil {
		tb.Fatalf("%.200q: no needs, but %+v %q", source, v.Invalid, v.Unknown)
	}
	return v.Needs
}

func read(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}
