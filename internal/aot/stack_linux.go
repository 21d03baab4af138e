//go:build linux && (amd64 || arm64)

package aot

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/watchdog"
)

const (
	// stackSize is the address space of a run's stack, which is aligned to it.
	stackSize = 64 << 20
	// stackGuard lies at the stack's low end and faults.
	stackGuard = 64 << 10
	// stackMargin is for the frames of functions that do not check the limit, and for the one
	// frame that does: scripts/wasm allows none of more than 64 KiB.
	stackMargin = 128 << 10
	// stackKept is the memory that an idle stack keeps. Most snippets need less.
	stackKept = 256 << 10
	// idleStacks bounds the stacks that are kept.
	idleStacks = 64
)

// stack is the machine's stack of one call. It belongs to the run: a sandbox at rest has none.
type stack struct {
	region []byte
	stay   *watchdog.Stay
}

// stacks keeps idle ones.
var stacks struct {
	mu   sync.Mutex
	idle []*stack
}

// getStack returns a stack whose lowest word is the address of a guest's context.
func getStack(g *Guest) (*stack, error) {
	stacks.mu.Lock()
	var s *stack
	if n := len(stacks.idle); n > 0 {
		s = stacks.idle[n-1]
		stacks.idle = stacks.idle[:n-1]
	}
	stacks.mu.Unlock()
	if s == nil {
		var err error
		if s, err = newStack(); err != nil {
			return nil, fmt.Errorf("cannot reserve a stack: %w", err)
		}
	}

	*(*uintptr)(s.at(0)) = uintptr(unsafe.Pointer(g.context(0)))
	fuel := uintptr(0)
	if g.program.fuel != 0 {
		fuel = uintptr(unsafe.Pointer(g.Field(g.program.fuel)))
	}
	s.stay.Watch(g.limitAddress(), fuel)
	return s, nil
}

// newStack reserves a region twice as large, and gives back the parts around the aligned one.
func newStack() (*stack, error) {
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	base, err := unix.MmapPtr(-1, 0, nil, 2*stackSize, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	before := -uintptr(base) % stackSize
	start := unsafe.Add(base, before)
	if before > 0 {
		err = unix.MunmapPtr(base, before)
	}

	err = errors.Join(err, unix.MunmapPtr(unsafe.Add(start, stackSize), stackSize-before))

	s := &stack{region: unsafe.Slice((*byte)(start), stackSize)}
	err = errors.Join(err, unix.Mprotect(s.region[codePage:stackGuard], unix.PROT_NONE))
	if err == nil {
		s.stay, err = watchdog.Take()
	}
	if err != nil {
		return nil, errors.Join(err, s.unmap())
	}
	return s, nil
}

func (s *stack) at(offset uintptr) unsafe.Pointer { return unsafe.Pointer(&s.region[offset]) }

// top is the address where a run begins.
func (s *stack) top() uintptr { return uintptr(s.at(stackSize-64)) &^ 15 }

// limit is the address below which a function must not begin.
func (s *stack) limit() uintptr { return uintptr(s.at(stackGuard + stackMargin)) }

// put keeps a stack for another run, or returns it to the system.
func (s *stack) put() {
	*(*uintptr)(s.at(0)) = 0
	deep := s.region[stackGuard : stackSize-stackKept]
	isClean := unix.Madvise(deep, unix.MADV_DONTNEED) == nil
	stacks.mu.Lock()
	defer stacks.mu.Unlock()
	if isClean && len(stacks.idle) < idleStacks {
		stacks.idle = append(stacks.idle, s)
		return
	}

	s.stay.Free()
	_ = s.unmap() // it fails only for memory that was never mapped
}

func (s *stack) unmap() error { return unix.MunmapPtr(s.at(0), stackSize) }
