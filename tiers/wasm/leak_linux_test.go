package wasm_test

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// holdings are the resources that a process can leak.
type holdings struct {
	mappings, files, goroutines int
	heap                        uint64
}

func holds(t *testing.T) holdings {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	files := countFiles(t)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return holdings{
		bytes.Count(maps, []byte("\n")), files, runtime.NumGoroutine(), m.HeapInuse,
	}
}

// countFiles counts the open files, after waiting until the garbage collector, in the background,
// has closed those that earlier tests left open.
func countFiles(t *testing.T) int {
	t.Helper()
	last := 0
	for equal := 0; equal < 5; {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		if equal++; len(files) != last {
			last, equal = len(files), 0
		}
	}
	return last
}

// TestTenThousandSandboxes opens sandboxes one after another, ends some of them badly, and looks
// for leaked resources.
func TestTenThousandSandboxes(t *testing.T) {
	skip.Short(t, "it opens ten thousand sandboxes")
	const many, warm = 10_000, 300
	tier := warmTier(t)
	sources := []string{
		"print(1+1)", "x = bytearray(40 << 20)", "1/0", "import os\nos._exit(3)",
		"async def f(): return 1\nawait f()",
	}
	cfg := tiers.Config{Limits: tiers.Limits{Memory: 128 << 20}}
	var before holdings
	for i := range many {
		if i == warm {
			before = holds(t)
		}
		s := openSandbox(t, tier, cfg)
		source := sources[0]
		if i%10 == 0 { // the other sources end instances for good, which is slower
			source = sources[i/10%len(sources)]
		}
		if _, err := s.Run(context.Background(), tiers.Job{Source: source}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	after := holds(t)
	// Go's own runtime maps memory freely; a leak of one mapping per sandbox would amount to
	// thousands.
	if after.files != before.files || after.goroutines != before.goroutines ||
		after.mappings > before.mappings+50 || after.heap > before.heap+16<<20 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
