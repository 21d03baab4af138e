// Package mapbudget counts the memory maps of sandboxes and of their threads, so that this process
// stays below vm.max_map_count. Beyond that limit, the kernel refuses every new mapping of the
// process, including those for Go's heap, and the whole process ends.
package mapbudget

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Budget is a shared number of memory maps. The users keep the count themselves: the kernel takes
// milliseconds to list the maps of a large process.
type Budget struct {
	maximum int
	taken   atomic.Int64
}

// spare is the divisor for the part of the process's maps that is withheld from sandboxes: for Go's
// heap, files, and libraries of the host. By default, that is 4095 maps; a busy process uses a few
// hundred of them.
const spare = 16

// New returns a budget for a process that may have maximum maps.
func New(maximum int) *Budget { return &Budget{maximum: maximum} }

// Process returns the budget of this process. The first call reads the kernel's limit, so a process
// that is about to lock itself down should call it first.
var Process = sync.OnceValue(func() *Budget { return New(readMaximum()) })

// usual is the default limit of the kernel.
const usual = 65530

func readMaximum() int {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return usual
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n <= 0 {
		return usual
	}
	return n
}

// Limit returns the number of maps that all sandboxes together can take.
func (b *Budget) Limit() int { return b.maximum - b.maximum/spare }

// Take counts n more maps, which the caller is about to create. The error names the limit.
func (b *Budget) Take(n int) error {
	if b.taken.Add(int64(n)) > int64(b.Limit()) {
		b.Give(n)
		return fmt.Errorf("sandboxes and their threads have all %d memory maps that they can have in one "+
			"process (vm.max_map_count is %d): close sandboxes, or raise vm.max_map_count", b.Limit(), b.maximum)
	}
	return nil
}

// Give returns n maps counted by Take, after the caller has unmapped them.
func (b *Budget) Give(n int) { b.taken.Add(int64(-n)) }

// Taken returns the number of maps currently counted.
func (b *Budget) Taken() int { return int(b.taken.Load()) }
