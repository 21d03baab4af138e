// Package firstgc delays the first garbage collection of a process that imports it. A short
// command allocates a few megabytes and ends. With Go's initial heap target of 4 MB, several
// collections would take a sixth of its time.
package firstgc

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

// first is the size of Go's memory, in bytes, at which the first collection starts. Afterwards,
// Go's defaults apply.
const first = 32 << 20

// The package is initialised before most other packages of the program, whose initialisation
// allocates memory.
func init() { //nolint:gochecknoinits // main would be too late
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		putOff(first)
	}
}

// putOff replaces the garbage collector's pace with a memory limit until the first collection.
func putOff(limit int64) {
	percent := debug.SetGCPercent(-1)
	debug.SetMemoryLimit(limit)
	unreachable := new([64]byte)
	runtime.AddCleanup(unreachable, func(percent int) {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(math.MaxInt64)
	}, percent)
}
