//go:build linux && (amd64 || arm64)

package aot

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/rlmhq/rlm/internal/machine/watchdog"
)

// enter goes to the guest's stack, and returns when the guest leaves it.
func enter(context unsafe.Pointer, target uintptr)

// Codes of exits above the numbers of imports.
const (
	trapped  = 1 << 32
	grows    = 1 << 33
	preempts = 1 << 34
)

// Host answers a guest.
type Host interface {
	// Call answers the import of a number, counted from 0. The parameters are in the slots; the
	// result goes into the first one. It may panic, which ends the guest's call with an error. If
	// others may have changed the handler of faults meanwhile, it should call [Program.Check].
	Call(number int, slots []uint64)
	// Grow adds pages to the memory, and reports false if it cannot. The memory does not move.
	Grow(pages uint64) bool
	// Preempt is called when a guest has computed for long without a call of the host: see
	// [Guest.Fuel]. It may panic, as Call may. It must not change the guest's memory: the guest's
	// compiler knows of no call here.
	Preempt()
}

// Guest is one instance of a program. Its state of StateSize bytes lies directly before its
// memory. One goroutine at a time may use it. A stack is reserved for one call of it, until Close.
//
// Close it before its state or its memory is unmapped.
type Guest struct {
	program *Program
	state   []byte
	calls   atomic.Int32 // that have begun
}

// NewGuest makes a guest over a state. size is the number of bytes of the memory in use, whole
// pages of WebAssembly. The memory must stay writable, and must begin where the state ends. What
// lies behind it, up to the program's [Program.Reach], must fault. Close the guest at its end.
func (p *Program) NewGuest(state []byte, size uint64) (*Guest, error) {
	if err := stacks().reserve(false); err != nil {
		return nil, err
	}
	g := &Guest{program: p, state: state[:StateSize]}
	clear(g.state)
	if err := new(Call).run(g, p.header.Start, nil, nobody{}); err != nil {
		g.Close()
		return nil, err
	}
	g.SetSize(size)
	return g, nil
}

// nobody is the host of a guest that sets its globals.
type nobody struct{}

func (nobody) Call(int, []uint64) { panic(errors.New("a start that calls the host")) }
func (nobody) Grow(uint64) bool   { return false }
func (nobody) Preempt()           {}

const wasmPage = 64 << 10

// SetSize tells the guest the size of its memory.
func (g *Guest) SetSize(size uint64) {
	*g.Field(g.program.header.Pages) = size / wasmPage
	*g.Field(g.program.header.Bytes) = size
}

// Close ends the use of a guest, once. It waits until nothing looks at the guest's state any more.
// The state and the memory stay the caller's.
func (g *Guest) Close() {
	watchdog.Unwatch(g.limitAddress())
	stacks().release(false)
}

// watch shows the guest to the watchdog. Free the stay.
func (g *Guest) watch() (*watchdog.Stay, error) {
	stay, err := watchdog.Take()
	if err != nil {
		return nil, err
	}

	fuel := uintptr(0)
	if g.program.fuel != 0 {
		fuel = uintptr(unsafe.Pointer(g.Field(g.program.fuel)))
	}
	stay.Watch(g.limitAddress(), math.MaxUint64, fuel)
	return stay, nil
}

// limitAddress is the address of the limit of the stack.
func (g *Guest) limitAddress() uintptr { return uintptr(unsafe.Pointer(g.context(stackLimit))) }

// Fuel returns what the guest has left. The global "fuel" counts it, which each loop of a program
// looks at. A guest that computes for more than 20 ms has to leave, at a loop as if the fuel were
// used up, or else through [Host.Preempt]. Neither changes what Fuel returns.
func (g *Guest) Fuel() int64 { return watchdog.Fuel(int64(*g.Field(g.program.fuel))) }

// SetFuel gives the guest fuel, at most 2^61.
func (g *Guest) SetFuel(units int64) { *g.Field(g.program.fuel) = uint64(units) }

// Size returns the number of bytes of the memory in use.
func (g *Guest) Size() uint64 { return *g.Field(g.program.header.Bytes) }

// Word returns the 32 bits at an offset of the guest's state.
func (g *Guest) Word(offset uint64) *uint32 { return (*uint32)(unsafe.Pointer(&g.state[offset])) }

// Field returns the 64 bits at an offset of the guest's state.
func (g *Guest) Field(offset uint64) *uint64 { return (*uint64)(unsafe.Pointer(&g.state[offset])) }

// context returns a word of the context.
func (g *Guest) context(offset uint64) *uint64 { return g.Field(contextAt + offset) }

// Call is a call of an exported function. While an import of one call is being answered, other
// calls of the guest may run, each on its own stack.
type Call struct {
	stack *stack
	sp    uint64
	slots [Slots]uint64 // of the import that is being answered
}

// Depth returns the bytes of the stack that the call uses while it waits for the host.
func (c *Call) Depth() int {
	if c.stack == nil || c.sp == 0 {
		return 0
	}

	return int(uint64(c.stack.top()) - c.sp)
}

// errHost marks what a host function panicked with.
var errHost = errors.New("(recovered from a host function)")

// ShrinkStack frees memory that the stack does not need while the call waits for the host, and
// returns its Depth.
func (c *Call) ShrinkStack() int {
	depth := c.Depth()
	if depth > 0 {
		c.stack.shrink(uintptr(c.sp))
	}
	return depth
}

// Run calls a function with the parameters in the slots, where it leaves its result. After
// [ErrNoStack], the function has not begun, and the guest can go on.
func (c *Call) Run(g *Guest, f Export, params []uint64, host Host) error {
	return c.run(g, f.Address, params, host)
}

func (c *Call) run(g *Guest, address uint64, params []uint64, host Host) (err error) {
	if err := g.program.Check(); err != nil {
		return err
	}
	if g.calls.Add(1) > 1 {
		if err := stacks().reserve(true); err != nil {
			g.calls.Add(-1)
			return err
		}
		defer stacks().release(true)
	}
	defer g.calls.Add(-1)

	context := unsafe.Pointer(g.context(0))
	stay, err := g.watch()
	if err != nil {
		return err
	}
	defer stay.Free()
	if c.stack, err = stacks().get(context); err != nil {
		return err
	}
	defer func() {
		stacks().put(c.stack)
		c.stack = nil
	}()

	code := uintptr(unsafe.Pointer(unsafe.SliceData(g.program.code)))
	all := unsafe.Slice(g.context(slots), Slots)
	copy(all, params)
	*g.context(function) = uint64(code) + address
	c.sp = uint64(c.stack.top())
	target := code + uintptr(g.program.header.Begin)
	for {
		*g.context(guestSP), *g.context(stackLimit) = c.sp, uint64(c.stack.limit())
		stay.Enter()
		enter(context, target)
		stay.Leave()
		target = code + uintptr(g.program.header.Resume)
		c.sp = *g.context(guestSP)

		switch exit := *g.context(exitCode); {
		case exit == 0:
			copy(params, all)
			return nil
		case exit&trapped != 0:
			return TrapError(exit)
		case exit == grows:
			all[0] = g.grow(all[0], host)
		case exit == preempts:
			if err := contain(host.Preempt); err != nil {
				return err
			}
		default:
			if err := c.answer(g, int(exit)-1, all, host); err != nil {
				return err
			}
		}
	}
}

// grow answers memory.grow: the old size in pages, or -1.
func (g *Guest) grow(pages uint64, host Host) uint64 {
	old := *g.Field(g.program.header.Pages)
	if old+pages > 1<<16 || !host.Grow(pages) {
		return 1<<64 - 1
	}

	g.SetSize((old + pages) * wasmPage)
	return old
}

// answer lets the host answer an import. Other calls may use the context meanwhile, so the
// parameters are copied.
func (c *Call) answer(g *Guest, number int, all []uint64, host Host) error {
	own := c.slots[:max(len(g.program.header.Imports[number].Params), 1)]
	copy(own, all)
	if err := contain(func() { host.Call(number, own) }); err != nil {
		return err
	}
	all[0] = own[0]
	return nil
}

// contain calls a function of the host, and makes an error of its panic.
func contain(call func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if failed, ok := r.(error); ok {
				err = fmt.Errorf("%w %w", failed, errHost)
			} else {
				err = fmt.Errorf("%v %w", r, errHost)
			}
		}
	}()
	call()
	return nil
}
