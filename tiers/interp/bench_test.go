package interp_test

import (
	"context"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// benchmarkStart measures a session on a warm worker up to its first result. The start of the
// worker is not included: see BenchmarkWorker.
func benchmarkStart(b *testing.B, language tiers.Language, source string) {
	b.Helper()
	tier := warmTier(b)
	for b.Loop() {
		b.StopTimer()
		if err := tier.Warm(context.Background()); err != nil {
			b.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // the pool's own refill is over by then
		b.StartTimer()
		s := openSandbox(b, tier, tiers.Config{})
		runOK(b, s, language, source)
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkStartPython(b *testing.B) { benchmarkStart(b, tiers.Python, "print(1+1)") }

func BenchmarkStartGo(b *testing.B) {
	benchmarkStart(b, tiers.Go, "import \"fmt\"\nfmt.Println(1+1)")
}

// BenchmarkWorker measures sessions without a warm worker, one after another, and so the cost of
// starting a worker.
func BenchmarkWorker(b *testing.B) {
	tier := warmTier(b)
	for b.Loop() {
		// No warm worker has this memory limit.
		s := openSandbox(
			b, tier, tiers.Config{Limits: tiers.Limits{Memory: 500 << 20}},
		)
		runOK(b, s, tiers.Python, "print(1+1)")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkSnippet(b *testing.B, language tiers.Language, first, source string) {
	b.Helper()
	s := openSandbox(b, warmTier(b), tiers.Config{})
	runOK(b, s, language, first)
	for b.Loop() {
		runOK(b, s, language, source)
	}
}

func BenchmarkSnippetPython(b *testing.B) {
	benchmarkSnippet(b, tiers.Python, "print(1)", "print(1+1)")
}

func BenchmarkSnippetGo(b *testing.B) {
	benchmarkSnippet(b, tiers.Go, "import \"fmt\"", "fmt.Println(1+1)")
}

// BenchmarkHostCall measures one call of a host function with JSON both ways.
func BenchmarkHostCall(b *testing.B) {
	s := openSandbox(
		b,
		warmTier(b),
		tiers.Config{
			Host:      &hosted{},
			Functions: []tiers.Function{{Name: "ask"}},
			Limits:    tiers.Limits{HostCalls: 1 << 30},
		},
	)
	runOK(b, s, tiers.Go, "func many(n int) { for i := 0; i < n; i++ { ask(\"question\") } }")
	const batch = 200
	for b.Loop() {
		runOK(b, s, tiers.Go, "many(200)")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/call")
}
