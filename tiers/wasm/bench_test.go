package wasm_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/stwait"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/tiertest"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// testEngine is the engine under test: RLM_ENGINE, or the default.
var testEngine = os.Getenv("RLM_ENGINE")

// warmTier is [warmTierOf] for the engine under test.
func warmTier(tb testing.TB) tiers.Tier {
	tb.Helper()
	return warmTierOf(tb, testEngine)
}

// warmTierOf returns a warm tier. Its cache is shared by the package's tests, so that the
// interpreter is compiled once.
func warmTierOf(tb testing.TB, engine string) tiers.Tier {
	tb.Helper()
	tier := wasm.New(wasm.Options{CacheDir: testcache.Dir(), Engine: engine})
	tb.Cleanup(func() {
		if err := tier.Close(); err != nil {
			tb.Error(err)
		}
	})
	tiertest.Require(tb, wasm.Name, tier.Probe(context.Background()))
	if err := tier.Warm(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return tier
}

func openSandbox(tb testing.TB, tier tiers.Tier, cfg tiers.Config) tiers.Sandbox {
	tb.Helper()
	s, err := tier.Open(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func runOK(tb testing.TB, s tiers.Sandbox, source string) {
	tb.Helper()
	r, err := s.Run(context.Background(), tiers.Job{Source: source})
	if err != nil {
		tb.Fatal(err)
	}
	if r.Status != tiers.StatusOK {
		tb.Fatalf("%s: %s %+v", source, r.Status, r.Exception)
	}
}

// BenchmarkWarm measures the preparation of a process that finds everything in the cache.
func BenchmarkWarm(b *testing.B) {
	warmTier(b)
	for b.Loop() {
		tier := wasm.New(wasm.Options{CacheDir: testcache.Dir(), Engine: testEngine})
		if err := tier.Warm(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := tier.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart measures a new sandbox up to its first result, and its end.
func BenchmarkStart(b *testing.B) {
	tier := warmTier(b)
	for b.Loop() {
		s := openSandbox(b, tier, tiers.Config{})
		runOK(b, s, "print(1+1)")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnippet measures a further snippet of a live session.
func BenchmarkSnippet(b *testing.B) {
	s := openSandbox(b, warmTier(b), tiers.Config{})
	defer s.Close()
	for b.Loop() {
		runOK(b, s, "print(1+1)")
	}
}

// BenchmarkHostCall measures one call of a host function with JSON both ways.
func BenchmarkHostCall(b *testing.B) {
	host := tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
		return tiers.Value(`{"answer": "yes", "score": 0.5}`), nil
	})
	s := openSandbox(b, warmTier(b), tiers.Config{
		Host:      host,
		Functions: []tiers.Function{{Name: "ask"}},
		Limits:    tiers.Limits{HostCalls: 1 << 30},
	})
	defer s.Close()
	runOK(
		b, s,
		"def many(n):\n    for i in range(n): ask('question', {'id': i, 'tags': ['a', 'b']}, "+
			"model='m')",
	)
	const batch = 1000
	for b.Loop() {
		runOK(b, s, "many(1000)")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/call")
}

// BenchmarkDescribe measures the description of tables of 240,000 values, which the guest reads.
func BenchmarkDescribe(b *testing.B) {
	var rows, lines strings.Builder
	rows.WriteString("id,amount,city,day,n,mix\n")
	for i := range 40_000 {
		n, mix := []string{"", "7", "12"}[i%3], []string{"5", "n/a", "2.5"}[i%3]
		fmt.Fprintf(&rows, "%d,%d.%02d,w%d,2026-03-%02d,%s,%s\n", i, i*7919%1000, i%100, i*7919%3000, 1+i%28, n, mix)
		fmt.Fprintf(&lines, `{"id":%d,"amount":%d.%02d,"city":"w%d","day":"2026-03-%02d","n":%v,"mix":%q}`+"\n",
			i, i*7919%1000, i%100, i*7919%3000, 1+i%28, i%3 == 0, mix)
	}

	tier := warmTier(b)
	for _, c := range []struct{ name, text, rows string }{
		{"rows.csv", rows.String(), "table()"}, {"rows.jsonl", lines.String(), "json_lines()"},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := bigtext.FromBytes(c.name, []byte(c.text))
			s := openSandbox(b, tier, tiers.Config{Inputs: []tiers.Input{{Name: c.name, Text: text}}})
			defer s.Close()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				runOK(b, s, "assert len(context."+c.rows+".describe()) == 6")
			}
		})
	}
}

// BenchmarkFork measures copying a live sandbox that holds some data.
func BenchmarkFork(b *testing.B) {
	s := openSandbox(b, warmTier(b), tiers.Config{})
	defer s.Close()
	runOK(b, s, "data = list(range(50000))")
	for b.Loop() {
		f, err := s.(tiers.Forker).Fork(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		runOK(b, f, "data[7]")
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckpoint measures a further snippet of a live session that is saved before each
// snippet.
func BenchmarkCheckpoint(b *testing.B) {
	s := openSandbox(b, warmTier(b), tiers.Config{})
	defer s.Close()
	runOK(b, s, "data = list(range(50000))")
	for b.Loop() {
		r, err := s.Run(b.Context(), tiers.Job{Source: "print(1+1)", Rejectable: true})
		if err != nil || r.Status != tiers.StatusOK {
			b.Fatal(r.Status, err)
		}
	}
}

// BenchmarkStopTheWorld stops all goroutines while 32 guests compute. Go cannot interrupt them, so
// it waits until each has used up its slice of fuel. worst-ms is the longest wait. The guests run
// loops, or endless trees of calls in C, with a different kind of tree in each guest: see
// testdata/calltrees.py.
func BenchmarkStopTheWorld(b *testing.B) {
	b.Run("loops", func(b *testing.B) {
		stopTheWorld(b, func(int) string { return "while True: sum(range(100))" })
	})
	b.Run("trees", func(b *testing.B) {
		stopTheWorld(b, func(guest int) string {
			return fmt.Sprintf("%s\nwhile True: grow([%d] * 40)()\n", callTrees, guest)
		})
	})
}

func stopTheWorld(b *testing.B, source func(guest int) string) {
	b.Helper()
	const guests = 32
	tier := warmTier(b)
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	for guest := range guests {
		s := openSandbox(b, tier, tiers.Config{Limits: tiers.Limits{Wall: time.Hour, Active: time.Hour}})
		all.Go(func() {
			_, _ = s.Run(ctx, tiers.Job{Source: source(guest)}) // cancel ends it
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		})
	}
	defer all.Wait()
	defer cancel()

	before := stwait.Read()
	for b.Loop() {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		<-time.After(time.Millisecond) // the guests compute
	}
	b.ReportMetric(stwait.Read().Longest(before).Seconds()*1000, "worst-ms")
}
