package python

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// native measures ast.parse and ast.walk. It reports the best of many runs, because the machine is
// shared.
const native = `
import ast, sys, time
source, best = sys.stdin.read(), 1e9
for _ in range(300):
    begun = time.perf_counter()
    for _ in ast.walk(ast.parse(source)):
        pass
    best = min(best, time.perf_counter() - begun)
print(int(best * 1e9))
`

// BenchmarkAnalyse analyses a snippet of fifty lines with a warm analyser, with a cached verdict,
// and with a new analyser. For comparison, native CPython parses and walks the snippet.
func BenchmarkAnalyse(b *testing.B) {
	source := read(b, "testdata/fifty.py")
	b.Run("uncached", func(b *testing.B) {
		a, _ := open(b)
		needs(b, a, source)
		n, best := 0, time.Hour
		for b.Loop() {
			n++
			fresh := fmt.Sprintf("%s# %d\n", source, n)
			begun := time.Now()
			needs(b, a, fresh)
			best = min(best, time.Since(begun))
		}
		b.ReportMetric(float64(best), "best-ns")
	})
	b.Run("cached", func(b *testing.B) {
		a, _ := open(b)
		for b.Loop() {
			needs(b, a, source)
		}
	})
	b.Run("cold", func(b *testing.B) {
		a, tier := open(b)
		needs(b, a, source)
		for b.Loop() {
			fresh := New(tier)
			needs(b, fresh, source)
			if err := fresh.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("native", func(b *testing.B) {
		python := os.Getenv("RLM_PYTHON")
		if python == "" {
			b.Skip("RLM_PYTHON names no Python to compare with")
		}
		for b.Loop() {
			command := exec.CommandContext(context.Background(), python, "-c", native)
			command.Stdin = strings.NewReader(source)
			out, err := command.Output()
			if err != nil {
				b.Fatal(err)
			}
			ns, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(ns), "best-ns")
		}
	})
}
