package firstgc

import (
	"math"
	"runtime/debug"
	"testing"
	"time"
)

var kept [][]byte

// TestTheFirstCollectionRestoresTheDefaults allocates more than the limit, so that Go collects,
// and waits for the end of the concurrent collection.
func TestTheFirstCollectionRestoresTheDefaults(t *testing.T) {
	defer func() { kept = nil }()
	debug.SetGCPercent(100) // init has turned the pace off
	const first = 16 << 20
	putOff(first)
	if limit := debug.SetMemoryLimit(-1); limit != first {
		t.Fatalf("the limit is %d", limit)
	}
	for range 4 * first >> 20 {
		kept = append(kept, make([]byte, 1<<20))
	}

	for end := time.Now().Add(time.Minute); debug.SetMemoryLimit(-1) != math.MaxInt64; {
		if time.Now().After(end) {
			t.Fatalf("the limit is still %d", debug.SetMemoryLimit(-1))
		}
		time.Sleep(time.Millisecond)
	}
	if percent := debug.SetGCPercent(100); percent != 100 {
		t.Errorf("the pace is %d %%", percent)
	}
}
