package tiersuite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/tiers"
)

// testLeaks opens and closes sandboxes that end in all possible ways, and checks that nothing
// remains of them.
func (s *suite) testLeaks(t *testing.T) {
	s.churnSandboxes(t, 10) // afterwards, a tier has opened everything that it keeps permanently
	goroutines := goleak.IgnoreCurrent()
	fds, maps := countDescriptors(t), countMappings(t)
	s.churnSandboxes(t, s.opt.Sandboxes)
	// An HTTP client keeps a few idle connections, and more after simultaneous calls.
	idle := []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}

	if err := goleak.Find(append(idle, goroutines)...); err != nil {
		t.Errorf("goroutines are left: %v", err)
	}
	runtime.GC()
	if after := countDescriptors(t); after > fds+s.opt.Sandboxes/3 { // a leak would be one or more per sandbox
		t.Errorf("%d descriptors before, %d after", fds, after)
	}

	// A few new mappings may belong to the Go runtime itself; a leak would add one or more per
	// sandbox.
	if after := countMappings(t); after > maps+s.opt.Sandboxes/3 {
		t.Errorf("%d mappings before, %d after", maps, after)
	}
}

// endings are ways in which the last snippet of a sandbox ends.
var endings = []string{
	"print(1)", "1 / 0", "while True: pass", "x = bytearray(1 << 30)", "raise SystemExit(1)", "ask('x')",
	"print('x' * 100000)",
	`while True:
    try:
        while True: pass
    except: pass`, "import os\nos._exit(1)", `g = iter([1])
for _ in range(1000000): g = map(int, g)
next(g)`, "FINAL(1)",
}

func (s *suite) churnSandboxes(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		if err := s.runLifetime(t.Context(), endings[i%len(endings)], i); err != nil {
			t.Fatalf("sandbox %d: %v", i, err)
		}
	}
}

// runLifetime opens a sandbox, uses it and closes it. Depending on i, it forks the sandbox or
// cancels the snippet.
func (s *suite) runLifetime(ctx context.Context, source string, i int) (err error) {
	cfg := newHost().config()
	cfg.Limits = tiers.Limits{Wall: s.opt.StopAfter / 5, Memory: s.opt.Memory}
	box, err := s.tier.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	if _, err := box.Run(ctx, tiers.Job{Source: harm.Marked}); err != nil && s.asRefusal(err) == nil {
		return err
	}

	if forker, ok := box.(tiers.Forker); ok && i%3 == 0 {
		copied, err := forker.Fork(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = copied.Close() }() // closing is tested elsewhere
	}

	if i%5 == 4 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
	}
	if _, err = box.Run(ctx, tiers.Job{Source: source}); errors.Is(err, context.DeadlineExceeded) ||
		s.asRefusal(err) != nil {
		return nil
	}

	return err
}

// countDescriptors counts the process's open files, if the system reports them.
func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Logf("open files are not counted here: %v", err)
		return 0
	}
	return len(entries)
}

// countMappings counts the process's memory mappings, if the system reports them.
func countMappings(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Logf("mappings are not counted here: %v", err)
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}
