package firstgc

import (
	"math"
	"runtime/debug"
	"testing"
)

var kept [][]byte

// TestTheFirstCollectionRestoresTheDefaults allocates until Go collects.
func TestTheFirstCollectionRestoresTheDefaults(t *testing.T) {
	defer func() { kept = nil }()
	debug.SetGCPercent(100) // init has put it off
	putOff(16 << 20)
	if limit := debug.SetMemoryLimit(-1); limit != 16<<20 {
		t.Fatalf("the limit is %d", limit)
	}
	for len(kept) < 1000 && debug.SetMemoryLimit(-1) != math.MaxInt64 {
		kept = append(kept, make([]byte, 1<<20))
	}

	percent := debug.SetGCPercent(100)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 || percent != 100 || len(kept) > 500 {
		t.Errorf("after %d MiB: limit %d, %d %%", len(kept), limit, percent)
	}
}
