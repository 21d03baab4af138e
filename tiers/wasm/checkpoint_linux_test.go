package wasm_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// residentMemory returns a line of this process's status, in bytes: VmRSS is its memory, VmHWM
// the peak since resetPeak.
func residentMemory(t *testing.T, line string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("the kernel does not report %s", line)
	}

	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

func resetPeak(t *testing.T) {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// TestASessionTakesTwiceItsMemory fills most of the memory of a session that is saved before each
// snippet. It checks that the host then holds the memory and one checkpoint, even while it takes
// the next one, and that a copy of the session takes the same amount again.
func TestASessionTakesTwiceItsMemory(t *testing.T) {
	skip.Short(t, "it fills two gigabytes of memory")
	skip.UnderRace(t)
	const limit, filled, idle = 512 << 20, 400 << 20, 64 << 20
	tier := warmTier(t)
	s := openSandbox(t, tier, tiers.Config{Limits: tiers.Limits{Memory: limit}})
	runOK(t, s, "pass")
	resetPeak(t)
	base := residentMemory(t, "VmRSS")

	run := func(s tiers.Sandbox, source string) {
		t.Helper()
		r, err := s.Run(t.Context(), tiers.Job{Source: source, Rejectable: true})
		if err != nil || r.Status != tiers.StatusOK {
			t.Fatalf("%s: %s %+v (%v)", source, r.Status, r.Exception, err)
		}
	}
	run(s, fmt.Sprintf("data = bytearray(b'x') * %d", filled))
	for i := range 3 {
		run(s, fmt.Sprintf("for at in range(0, len(data), 4096): data[at] = %d", i))
	}
	if peak := residentMemory(t, "VmHWM") - base; peak < 2*filled || peak > 2*limit {
		t.Errorf("the session took up to %d MiB of the host's memory", peak>>20)
	}

	copied, err := s.(tiers.Forker).Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(copied, "assert data[4096] == 2; data[4096] = 3")
	run(copied, "assert data[4096] == 3")
	if peak := residentMemory(t, "VmHWM") - base; peak < 4*filled || peak > 4*limit {
		t.Errorf("the session and its copy took up to %d MiB of the host's memory", peak>>20)
	}

	for _, s := range []tiers.Sandbox{s, copied} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left := residentMemory(t, "VmRSS") - base; left > idle {
		t.Errorf("the closed sessions kept %d MiB of the host's memory", left>>20)
	}
}
