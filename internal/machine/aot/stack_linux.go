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
	// stackSize is the address space of a call's stack, which is aligned to it.
	stackSize = 64 << 20
	// stackGuard lies at the stack's low end, behind the page with the address of the context, and
	// faults. Each function that the guest can call checks the limit, so nothing should reach it.
	stackGuard = 64 << 10
	// stackFrame bounds the frame of a function, see scripts/wasm/aot.sh. So a call that goes deeper
	// leaves a return address in each part of this size.
	stackFrame = 64 << 10
	// stackMargin is for the frames of functions that do not check the limit, and for the one
	// frame that does.
	stackMargin = 2 * stackFrame
	// stackKept is the memory that an idle stack keeps. Most snippets need less.
	stackKept = 256 << 10
	// stackWaiting is the memory that a waiting call keeps below its own.
	stackWaiting = 128 << 10
	// idleStacks bounds the idle stacks with memory, and about the idle ones without.
	idleStacks = 64

	// blockStacks is the number of stacks in one block.
	blockStacks = 16
	// stackMaps are the memory maps of a stack in a block: its guard, and all between this guard and
	// the next one. A block has one more.
	stackMaps = 2
	blockMaps = blockStacks*stackMaps + 1
)

// stack is the machine's stack of one call. A guest at rest has none.
type stack struct {
	region []byte // of address space
	home   *block
}

// block is address space for stacks side by side, so that the kernel needs few memory maps for them.
type block struct {
	mapped   []byte
	free     uint16 // the stacks that no call has, as bits
	warm     uint16 // those of them that keep some memory
	prepared int    // the stacks from the first one that have a guard
}

// arena has the stacks of a process. A user first reserves a stack, and can then get one at any time.
type arena struct {
	budget *mapbudget.Budget
	// mostCalls bounds the reservations of calls beside those of guests.
	mostCalls int

	mu       sync.Mutex
	blocks   []*block // calls get stacks of the first ones
	reserved int
	calls    int // of the reserved stacks
	warm     int
}

// stacks are those of this process. Half of its memory maps are left to the guests and to their own
// stacks.
var stacks = sync.OnceValue(func() *arena {
	budget := mapbudget.Process()
	return &arena{budget: budget, mostCalls: budget.Limit() / 2 / stackMaps}
})

// reserve makes sure that there is a stack for one more guest, or for a call beside it.
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

// release ends a reservation. Its stack is idle.
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

// get returns a reserved stack, whose lowest word is the address of a context.
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

// put ends a call's use of a stack, which keeps little or no memory.
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

// allFree is the value of free in a block that no call uses.
const allFree = 1<<blockStacks - 1

// newBlock reserves address space, and gives back the parts around the aligned one.
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

// prepare makes a stack accessible but for its guard. Stacks are prepared in their order, so each
// first page has the map of the stack before.
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

// number is the stack's place in its block.
func (s *stack) number() int {
	return int(uintptr(s.at(0))-uintptr(unsafe.Pointer(unsafe.SliceData(s.home.mapped)))) / stackSize
}

func (s *stack) at(offset uintptr) unsafe.Pointer { return unsafe.Pointer(&s.region[offset]) }

// top is the address where a call begins.
func (s *stack) top() uintptr { return uintptr(s.at(stackSize-64)) &^ 15 }

// limit is the address below which a function must not begin.
func (s *stack) limit() uintptr { return uintptr(s.at(stackGuard + stackMargin)) }

// drop frees the memory up to an offset. The kernel refuses only what was never mapped.
func (s *stack) drop(end uintptr) { _ = unix.Madvise(s.region[stackGuard:end], unix.MADV_DONTNEED) }

// shrink frees what lies far below the stack pointer, if the call has ever been so deep.
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

// wasIn reports whether a page between two offsets has memory. Without an answer of the kernel, it
// may have.
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
