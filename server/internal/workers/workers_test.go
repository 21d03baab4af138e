//go:build linux && (amd64 || arm64)

package workers

import (
	"log"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/tiers"
)

func TestMain(m *testing.M) {
	if err := testcache.Use(); err != nil {
		log.Fatal(err)
	}
	goleak.VerifyTestMain(m)
}

// openTier returns a tier in workers, which is closed when the test ends.
func openTier(tb testing.TB, o Options) Tier {
	tb.Helper()
	skip.WithoutJail(tb)
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = engine.Close() }) // the tier closes its prepared parts
	o.AllowSampled = true
	if os.Getenv("RLM_TEST_LOG") != "" {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}

	tier, err := New(findTier(tb, engine, "wasm"), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := tier.Close(); err != nil {
			tb.Error(err)
		}
	})
	return tier
}

func findTier(tb testing.TB, engine *rlm.Engine, name string) tiers.Tier {
	tb.Helper()
	for _, tier := range engine.Tiers() {
		if tier.Info().Name == name {
			return tier
		}
	}
	tb.Fatalf("there is no tier %s", name)
	return nil
}

func open(tb testing.TB, tier tiers.Tier, cfg tiers.Config) tiers.Sandbox {
	tb.Helper()
	box, err := tier.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := box.Close(); err != nil {
			tb.Error(err)
		}
	})
	return box
}

func runSnippet(tb testing.TB, box tiers.Sandbox, source string) tiers.Result {
	tb.Helper()
	r, err := box.Run(tb.Context(), tiers.Job{Source: source})
	if err != nil {
		tb.Fatalf("%s: %v", source, err)
	}
	return r
}

func mustPrint(tb testing.TB, box tiers.Sandbox, source, want string) {
	tb.Helper()
	if r := runSnippet(tb, box, source); r.Stdout != want || r.Lost != nil {
		tb.Fatalf("%s prints %q (%s, %+v, %+v), want %q", source, r.Stdout, r.Status, r.Exception, r.Lost, want)
	}
}

func TestASnippetRuns(t *testing.T) {
	tier := openTier(t, Options{})
	box := open(t, tier, tiers.Config{})
	mustPrint(t, box, "print(1 + 1)", "2\n")
	if s := tier.Stats(); s.Live != 1 || s.Saved != 0 {
		t.Errorf("%+v", s)
	}
}

// TestSuite runs the groups of tests that depend on the messages between parent and worker; the
// guest is the same as in tier wasm.
func TestSuite(t *testing.T) {
	skip.Short(t, "tier wasm runs the same suite")
	tiersuite.Run(t, openTier(t, Options{}), tiersuite.Options{
		KnownGuest: true,
		Groups: []string{
			"Contract", "Persistence", "HostCalls", "Finish", "Results", "OutFolder", "Packages", "Context",
			"Move", "Fork",
		},
	})
}

// TestNoExactStateOfAClientIsKept checks that a client's exact state is dropped, because it would
// stay in the server's memory as long as the session.
func TestNoExactStateOfAClientIsKept(t *testing.T) {
	kept, err := keepState(tiers.State{Data: []byte("x"), Exact: []byte("pages")})
	if err != nil || kept.state.Exact != nil || string(kept.state.Data) != "x" {
		t.Errorf("%+v, %v", kept, err)
	}
}
