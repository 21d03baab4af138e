//go:build linux && (amd64 || arm64)

package aot

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/machine/mapbudget"
)

const (
	// stackSize is the size, and the alignment, of a call's stack in address space.
	stackSize = 64 << 20
	// stackGuard is the inaccessible area at the stack's low end, after the page with the address
	// of the context. Each function that the guest can call checks the limit, so nothing should
	// reach it.
	stackGuard = 64 << 10
	// stackFrame bounds the frame of a function: see scripts/wasm/aot.sh. So a deep call leaves a
	// return address in each part of this size.
	stackFrame = 64 << 10
	// stackMargin is for the frames of functions that do not check the limit, and for the one
	// frame that does.
	stackMargin = 2 * stackFrame
	// stackKept is the memory that an idle stack keeps, in bytes. Most snippets need less than
	// this.
	stackKept = 256 << 10
	// stackWaiting is the unused memory that a waiting call keeps below its frames, in bytes.
	stackWaiting = 128 << 10
	// idleStacks bounds the number of idle stacks with memory, and approximately the number of
	// those without.
	idleStacks = 64

	// blockStacks is the number of stacks in one block.
	blockStacks = 16
	// stackMaps are the memory maps of a stack in a block: its guard, and the rest up to the next
	// guard. A block has one more map.
	stackMaps = 2
	blockMaps = blockStacks*stackMaps + 1
)

// stack is the machine stack of one call. An idle guest has no stack.
type stack struct {
	region []byte // address space
	home   *block
}

// block is address space for adjacent stacks, which need few memory maps of the kernel.
type block struct {
	mapped   []byte
	free     uint16 // bits of the stacks without a call
	warm     uint16 // bits of the free stacks that keep some memory
	prepared int    // number of leading stacks with a guard
}

// arena holds the stacks of a process. A user first reserves a stack, and can then obtain one at
// any time.
type arena struct {
	budget *mapbudget.Budget
	// mostCalls bounds the reservations of calls, in addition to those of guests.
	mostCalls int

	mu       sync.Mutex
	blocks   []*block // calls use stacks of the first ones
	reserved int
	calls    int // reserved stacks for calls
	warm     int
}

// stacks returns the stacks of this process. The stacks of calls use at most half of its memory
// maps; the rest is for the guests and their own stacks.
var stacks = sync.OnceValue(func() *arena {
	budget := mapbudget.Process()
	return &arena{budget: budget, mostCalls: budget.Limit() / 2 / stackMaps}
})

// reserve reserves a stack for one more guest, or for an additional call.
func (a *arena) reserve(isCall bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if isCall && a.calls >= a.mostCalls {
		return fmt.Errorf("%w: this process has %d threads of guests, and all its sandboxes can have %d "+
			"(a fourth of vm.max_map_count): end threads, or raise vm.max_map_count", ErrNoStack, a.calls, a.mostCalls)
	}
	if a.reserved == len(a.blocks)*blockStacks {
		b, err := newBlock(a.budget)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoStack, err)
		}
		a.blocks = append(a.blocks, b)
	}

	a.reserved++
	if isCall {
		a.calls++
	}
	return nil
}

// release ends a reservation, whose stack is idle.
func (a *arena) release(isCall bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reserved--
	if isCall {
		a.calls--
	}
	if len(a.blocks)*blockStacks-a.reserved < idleStacks+blockStacks {
		return
	}

	for i := len(a.blocks) - 1; i >= 0; i-- {
		if b := a.blocks[i]; b.free == allFree {
			a.blocks = append(a.blocks[:i], a.blocks[i+1:]...)
			a.warm -= bits.OnesCount16(b.warm)
			_ = b.unmap(a.budget) // it fails only for memory that was never mapped
			return
		}
	}
}

// get returns a reserved stack with the address of a context in its lowest word.
func (a *arena) get(context unsafe.Pointer) (*stack, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.blocks {
		if b.free == 0 {
			continue
		}
		i := bits.TrailingZeros16(b.free)
		if err := b.prepare(i); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoStack, err)
		}

		b.free &^= 1 << i
		if b.warm&(1<<i) != 0 {
			b.warm &^= 1 << i
			a.warm--
		}
		s := &stack{b.mapped[i*stackSize : (i+1)*stackSize], b}
		*(*uintptr)(s.at(0)) = uintptr(context)
		return s, nil
	}

	return nil, fmt.Errorf("%w: none is reserved", ErrNoStack)
}

// put returns a stack after a call. The stack keeps little or no memory.
func (a *arena) put(s *stack) {
	*(*uintptr)(s.at(0)) = 0
	s.drop(stackSize - stackKept)
	a.mu.Lock()
	defer a.mu.Unlock()
	i := s.number()
	s.home.free |= 1 << i
	if a.warm < idleStacks {
		s.home.warm |= 1 << i
		a.warm++
	} else {
		s.drop(stackSize)
	}
}

// allFree is the value of free in an unused block.
const allFree = 1<<blockStacks - 1

// newBlock reserves address space, and returns the parts outside the aligned one.
func newBlock(budget *mapbudget.Budget) (*block, error) {
	if err := budget.Take(blockMaps); err != nil {
		return nil, err
	}
	const size = blockStacks * stackSize
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	base, err := unix.MmapPtr(-1, 0, nil, size+stackSize, unix.PROT_NONE, flags)
	if err != nil {
		budget.Give(blockMaps)
		return nil, fmt.Errorf("cannot reserve %d MiB of address space: %w: close sandboxes, or raise "+
			"ulimit -v or vm.max_map_count", (size+stackSize)>>20, err)
	}

	before := -uintptr(base) % stackSize
	start := unsafe.Add(base, before)
	b := &block{mapped: unsafe.Slice((*byte)(start), size), free: allFree}
	if before > 0 {
		err = unix.MunmapPtr(base, before)
	}
	err = errors.Join(err, unix.MunmapPtr(unsafe.Add(start, size), stackSize-before))
	if err != nil {
		return nil, errors.Join(err, b.unmap(budget))
	}
	return b, nil
}

// prepare makes a stack accessible except for its guard. Stacks are prepared in order, so each
// first page shares the map of the previous stack.
func (b *block) prepare(i int) error {
	if i < b.prepared {
		return nil
	}
	region := b.mapped[i*stackSize : (i+1)*stackSize]
	err := unix.Mprotect(region[:codePage], unix.PROT_READ|unix.PROT_WRITE)
	if err == nil {
		err = unix.Mprotect(region[stackGuard:], unix.PROT_READ|unix.PROT_WRITE)
	}
	if err != nil {
		return fmt.Errorf("cannot make a stack accessible: %w", err)
	}
	b.prepared++
	return nil
}

func (b *block) unmap(budget *mapbudget.Budget) error {
	err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b.mapped)), uintptr(len(b.mapped)))
	budget.Give(blockMaps)
	return err
}

// number returns the index of the stack in its block.
func (s *stack) number() int {
	return int(uintptr(s.at(0))-uintptr(unsafe.Pointer(unsafe.SliceData(s.home.mapped)))) / stackSize
}

func (s *stack) at(offset uintptr) unsafe.Pointer { return unsafe.Pointer(&s.region[offset]) }

// top returns the address where a call begins.
func (s *stack) top() uintptr { return uintptr(s.at(stackSize-64)) &^ 15 }

// limit returns the address below which no function may begin.
func (s *stack) limit() uintptr { return uintptr(s.at(stackGuard + stackMargin)) }

// drop frees the memory up to an offset. The kernel refuses only memory that was never mapped.
func (s *stack) drop(end uintptr) { _ = unix.Madvise(s.region[stackGuard:end], unix.MADV_DONTNEED) }

// shrink frees the memory far below the stack pointer, if the call has used it.
func (s *stack) shrink(sp uintptr) {
	low := (sp - uintptr(s.at(0))) &^ (codePage - 1)
	if low < stackGuard+stackWaiting+stackFrame {
		return
	}
	low -= stackWaiting
	if s.wasIn(low-stackFrame, low) {
		s.drop(low)
	}
}

// wasIn reports whether any page between two offsets is in memory. If the kernel does not answer,
// it returns true.
func (s *stack) wasIn(start, end uintptr) bool {
	var present [stackFrame / codePage]byte
	_, _, code := unix.RawSyscall(
		unix.SYS_MINCORE, uintptr(s.at(start)), end-start, uintptr(unsafe.Pointer(&present)),
	)
	if code != 0 {
		return true
	}
	for _, page := range present {
		if page&1 != 0 {
			return true
		}
	}
	return false
}
