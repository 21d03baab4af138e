package escapes

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// counted are the classes whose cases run one at a time, so that their cost for the host can
// be measured.
var counted = []string{"exhaustion", "session", "hostcalls", "amplification", "time"}

// The allowed cost of a case in the host process, beyond that of the tier itself.
const (
	mostHostMemory    = 160 << 20      // bytes; the corpus's largest requests have 60 MiB
	guestsHere        = 2 * caseMemory // additional bytes if the guest and its checkpoint are in this process
	mostHostProcessor = 10 * time.Second
)

// host is the state of this process before a case.
type host struct {
	memory                  int64 // resident, in bytes
	processor               time.Duration
	goroutines, descriptors int

	most    int64         // allowed growth of the memory, in bytes
	settles time.Duration // how long goroutines and descriptors may take to disappear
	slack   int           // how many of these may stay, since a server keeps connections to its database
}

// isCounted reports whether the cost of a case for the host is measured.
func (c Case) isCounted() bool { return isCounted(c.Class) }

func isCounted(class string) bool { return slices.Contains(counted, class) }

// lookAtHost records the state of this process, and restarts the measurement of its peak.
func lookAtHost(t *testing.T, tier string) host {
	t.Helper()
	most := int64(mostHostMemory)
	if tier == "wasm" {
		most += guestsHere
	}

	debug.FreeOSMemory()
	//nolint:gosec // a file of the kernel
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		t.Skipf("the peak of this process's memory cannot be measured: %v", err)
	}
	return host{
		memory: status(t, "VmRSS"), processor: processorTime(t),
		goroutines: runtime.NumGoroutine(), descriptors: countDescriptors(t),
		most: most, settles: 10 * time.Second,
	}
}

// findCost describes the excessive cost of a case for the host, or returns an empty string. The
// case's sandbox must be closed.
func (h host) findCost(t *testing.T) string {
	t.Helper()
	if grown := status(t, "VmHWM") - h.memory; grown > h.most {
		return fmt.Sprintf("the host's memory grew by %d MiB", grown>>20)
	}
	if took := processorTime(t) - h.processor; took > mostHostProcessor {
		return fmt.Sprintf("it took %s of the host's processor time", took)
	}

	goroutines, descriptors := 0, 0
	for deadline := time.Now().Add(h.settles); time.Now().Before(deadline); time.Sleep(lateness / 10) {
		goroutines, descriptors = runtime.NumGoroutine()-h.goroutines, countDescriptors(t)-h.descriptors
		if goroutines <= h.slack && descriptors <= h.slack {
			return ""
		}
	}
	return fmt.Sprintf("it left %d goroutines and %d descriptors on the host", goroutines, descriptors)
}

// status returns a line of /proc/self/status, in bytes.
func status(t *testing.T, name string) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int64
		rest, found := strings.CutPrefix(lines.Text(), name+":")
		if _, err := fmt.Sscanf(rest, "%d kB", &kib); found && err == nil {
			return kib << 10
		}
	}
	t.Fatalf("/proc/self/status has no line %s", name)
	return 0
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
