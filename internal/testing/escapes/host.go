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

// What a case may cost the process of the host, beyond what the tier itself uses.
const (
	mostHostMemory    = 160 << 20      // bytes; the largest requests of the corpus have 60 MiB
	guestsHere        = 2 * caseMemory // where the guest and its checkpoint lie in this process
	mostHostProcessor = 10 * time.Second
)

// host is the state of this process before a case.
type host struct {
	memory                  int64 // resident bytes
	processor               time.Duration
	goroutines, descriptors int

	most    int64         // by which the memory may grow, in bytes
	settles time.Duration // how long goroutines and descriptors get to go
	slack   int           // of these that may stay: a server keeps connections to its database
}

// isCounted reports whether the cost of a case for the host is measured.
func (c Case) isCounted() bool { return isCounted(c.Class) }

func isCounted(class string) bool { return slices.Contains(counted, class) }

// lookAtHost notes the state of this process, and starts a new measurement of its peak.
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

// findCost says what a case has cost the host that it must not, empty if nothing. Its sandbox
// must be closed.
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
