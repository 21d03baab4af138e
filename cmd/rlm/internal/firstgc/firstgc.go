// Package firstgc puts off the first garbage collection of a process that imports it. A short
// command allocates a few megabytes and ends. Go would collect them several times, because its
// heap begins with 4 MB, which takes a sixth of the command's time.
package firstgc

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

// first is the memory of Go at the first collection, in bytes. After it, Go's defaults apply.
const first = 32 << 20

// The package is initialised before most others of the program, which allocate already.
func init() { //nolint:gochecknoinits // main would be too late
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		putOff(first)
	}
}

// putOff replaces the pace of collections by a limit, up to the first one.
func putOff(limit int64) {
	percent := debug.SetGCPercent(-1)
	debug.SetMemoryLimit(limit)
	unreachable := new([64]byte)
	runtime.AddCleanup(unreachable, func(percent int) {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(math.MaxInt64)
	}, percent)
}
