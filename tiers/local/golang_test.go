//go:build unix

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/gosuite"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// goTier returns a tier that runs Go. If there is none, it ends the test.
func goTier(tb testing.TB) *local.Tier {
	tb.Helper()
	tier := newTier(tb, local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: -1})
	err := tier.Probe(tb.Context())
	if err == nil && !slices.Contains(tier.Info().Languages, tiers.Go) {
		err = errors.New(tier.Info().Version)
	}
	tiertest.Require(tb, local.Name, err)
	return tier
}

func TestGo(t *testing.T) {
	skip.Short(t, "it compiles dozens of programs")
	tiertest.RunGo(t, goTier(t))
}

// BenchmarkGo measures a session's first snippet and a further one, which exits so that the session
// does not keep it. The benchmark "cold" first compiles the standard library, which happens once
// per host.
func BenchmarkGo(b *testing.B) {
	tier := goTier(b)
	gosuite.RunOK(b, gosuite.Open(b, tier, tiers.Config{}), "1")
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			s, err := tier.Open(b.Context(), tiers.Config{})
			if err != nil {
				b.Fatal(err)
			}
			gosuite.RunOK(b, s, "import \"fmt\"\nfmt.Println(1 + 1)")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	s := gosuite.Open(b, tier, tiers.Config{})
	gosuite.RunOK(b, s, "import (\n\t\"fmt\"\n\t\"syscall\"\n)")
	b.Run("further", func(b *testing.B) {
		for b.Loop() {
			r := gosuite.RunSnippet(b, s, "fmt.Println(1 + 1)\nsyscall.Exit(0)")
			if r.Status != tiers.StatusExited || r.Stdout != "2\n" {
				b.Fatalf("%+v", r)
			}
		}
	})
	b.Run("call", func(b *testing.B) {
		h := tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) { return json.Marshal("answer") })
		s := gosuite.Open(b, tier, tiers.Config{
			Host: h, Functions: []tiers.Function{{Name: "ask"}},
			Limits: tiers.Limits{HostCalls: 1 << 30},
		})
		gosuite.RunOK(b, s, fmt.Sprintf("for range %d { ask(1) }", b.N))
	})
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			cold := newTier(
				b,
				local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: -1, GoCache: b.TempDir()},
			)
			gosuite.RunOK(b, gosuite.Open(b, cold, tiers.Config{}), "1")
		}
	})
}
