//go:build unix

package local_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
)

// python returns the path of the tier's interpreter.
func python(tb testing.TB, tier *local.Tier) string {
	tb.Helper()
	_, path, _ := strings.Cut(tier.Info().Version, ", ")
	path, _, _ = strings.Cut(path, ";") // the part after it is the path of Go
	return path
}

// BenchmarkNativeStart is the baseline for the others.
func BenchmarkNativeStart(b *testing.B) {
	path := python(b, usual(b))
	for b.Loop() {
		if err := exec.CommandContext(
			b.Context(), path, "-I", "-S", "-c", "print(1+1)",
		).Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func warm(b *testing.B, tier *local.Tier) {
	b.Helper()
	if err := tier.Warm(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func mustRun(b *testing.B, box tiers.Sandbox, source string) {
	b.Helper()
	if r, err := box.Run(b.Context(), tiers.Job{Source: source}); err != nil ||
		r.Status != tiers.StatusOK {
		b.Fatalf("%v %+v", err, r)
	}
}

// BenchmarkStartWarm opens a sandbox on a process started in advance and runs a first snippet.
func BenchmarkStartWarm(b *testing.B) {
	tier, took := usual(b), time.Duration(0)
	for b.Loop() { // the timer keeps running; otherwise one measured second would take minutes
		warm(b, tier)
		begun := time.Now()
		box, err := tier.Open(b.Context(), tiers.Config{})
		if err != nil {
			b.Fatal(err)
		}
		mustRun(b, box, "print(1+1)")
		took += time.Since(begun)
		if err := box.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/start")
}

// BenchmarkStartCold is BenchmarkStartWarm without a process started in advance.
func BenchmarkStartCold(b *testing.B) {
	tier := newTier(b, local.Options{Python: python(b, usual(b)), Warm: -1})
	for b.Loop() {
		box, err := tier.Open(b.Context(), tiers.Config{})
		if err != nil {
			b.Fatal(err)
		}
		mustRun(b, box, "print(1+1)")
		b.StopTimer()
		if err := box.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkSnippet runs snippets one after another. BenchmarkSnippetKept pauses before each, as
// between answers of a model, so that each gets a keeper.
func BenchmarkSnippet(b *testing.B) {
	box := box(b, usual(b), tiers.Config{})
	for b.Loop() {
		mustRun(b, box, "print(1+1)")
	}
}

func BenchmarkSnippetKept(b *testing.B) {
	box, took := box(b, usual(b), tiers.Config{}), time.Duration(0)
	for b.Loop() {
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		mustRun(b, box, "print(1+1)")
		took += time.Since(begun)
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/snippet")
}

func BenchmarkHostCall(b *testing.B) {
	host := tiers.HostFunc(
		func(context.Context, tiers.Call) (tiers.Value, error) { return tiers.Value("1"), nil },
	)
	box := box(b, usual(b), tiers.Config{
		Host:      host,
		Functions: []tiers.Function{{Name: "ask"}},
		Limits:    tiers.Limits{HostCalls: 1 << 30},
	})
	const calls = 1000
	for b.Loop() {
		mustRun(b, box, "for _ in range(1000): ask(1)")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*calls), "ns/call")
}

// tenMiB is a namespace of about 10 MiB.
const tenMiB = "x = [{'id': i, 'name': f'row {i}', 'tags': ['a', 'b', i]} for i in " +
	"range(70_000)]\ntext = 'é' * 3_000_000"

func BenchmarkExport(b *testing.B) {
	box := box(b, usual(b), tiers.Config{})
	mustRun(b, box, tenMiB)
	size := 0
	for b.Loop() {
		state, err := exporter(b, box).Export(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		size = len(state.Data)
	}
	b.SetBytes(int64(size))
}

func BenchmarkImport(b *testing.B) {
	tier := usual(b)
	from := box(b, tier, tiers.Config{})
	mustRun(b, from, tenMiB)
	state, err := exporter(b, from).Export(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	took := time.Duration(0)
	for b.Loop() {
		warm(b, tier)
		to, err := tier.Open(b.Context(), tiers.Config{})
		if err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		if _, err := exporter(b, to).Import(b.Context(), state); err != nil {
			b.Fatal(err)
		}
		took += time.Since(begun)
		if err := to.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/import")
}

// BenchmarkNativePickle is the baseline for Export and Import: dumps and loads of the same
// values.
func BenchmarkNativePickle(b *testing.B) {
	box := box(b, usual(b), tiers.Config{})
	mustRun(b, box, tenMiB+"\nimport pickle")
	for b.Loop() {
		mustRun(b, box, "_ = len(pickle.loads(pickle.dumps([x, text], 5)))")
	}
}

func exporter(tb testing.TB, box tiers.Sandbox) tiers.Exporter {
	tb.Helper()
	e, ok := box.(tiers.Exporter)
	if !ok {
		tb.Fatal("the sandbox does not export")
	}
	return e
}
