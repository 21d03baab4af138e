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

// enter switches to the guest's stack, and returns when the guest leaves it.
func enter(context unsafe.Pointer, target uintptr)

// These are codes of exits, above the numbers of imports.
const (
	trapped  = 1 << 32
	grows    = 1 << 33
	preempts = 1 << 34
)

// Host implements the functions that a guest calls.
type Host interface {
	// Call implements the import with the given number, counted from 0. The parameters are in the
	// slots; the result goes into the first slot. Call may panic, which ends the guest's call with
	// an error. If other code may have replaced the fault handler in the meantime, Call should call
	// [Program.Check].
	Call(number int, slots []uint64)
	// Grow adds pages to the memory, or returns false if it cannot. The memory does not move.
	Grow(pages uint64) bool
	// Preempt is called when a guest has computed for a long time without calling the host: see
	// [Guest.Fuel]. It may panic, like Call. It must not change the guest's memory: the guest's
	// compiler does not expect a call here.
	Preempt()
}

// Guest is one instance of a program. Its state of StateSize bytes ends where its memory begins. It
// does not support concurrent use. A stack for one call is reserved until Close.
//
// Close it before its state or its memory is unmapped.
type Guest struct {
	program *Program
	state   []byte
	calls   atomic.Int32 // calls begun
}

// NewGuest creates a guest with the given state. The parameter size is the size of the memory in
// use, in bytes; it is a whole number of WebAssembly pages. The memory must remain writable, and
// must begin where the state ends. Accesses beyond it, up to the program's [Program.Reach], must
// fault. Close the guest when it is no longer needed.
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

// nobody is the host while a guest sets its globals: during that time, the guest must not call the
// host.
type nobody struct{}

func (nobody) Call(int, []uint64) { panic(errors.New("a start that calls the host")) }
func (nobody) Grow(uint64) bool   { return false }
func (nobody) Preempt()           {}

const wasmPage = 64 << 10

// SetSize sets the size of the memory that the guest uses, in bytes.
func (g *Guest) SetSize(size uint64) {
	*g.Field(g.program.header.Pages) = size / wasmPage
	*g.Field(g.program.header.Bytes) = size
}

// Close ends the use of a guest; it must be called only once. It waits until nothing accesses the
// guest's state. The caller keeps the state and the memory.
func (g *Guest) Close() {
	watchdog.Unwatch(g.limitAddress())
	stacks().release(false)
}

// watch registers the guest with the watchdog. The caller must free the stay.
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

// limitAddress returns the address of the stack limit.
func (g *Guest) limitAddress() uintptr { return uintptr(unsafe.Pointer(g.context(stackLimit))) }

// Fuel returns the guest's remaining fuel. The global "fuel" counts it, and each loop of a program
// checks it. The watchdog makes a guest that computes for more than 20 ms leave, either at a loop
// as if the fuel were exhausted, or through [Host.Preempt]. Neither changes the result of Fuel.
func (g *Guest) Fuel() int64 { return watchdog.Fuel(int64(*g.Field(g.program.fuel))) }

// SetFuel sets the guest's fuel, at most 2^61.
func (g *Guest) SetFuel(units int64) { *g.Field(g.program.fuel) = uint64(units) }

// Size returns the size of the memory in use, in bytes.
func (g *Guest) Size() uint64 { return *g.Field(g.program.header.Bytes) }

// Word returns a pointer to the 32 bits at an offset of the guest's state.
func (g *Guest) Word(offset uint64) *uint32 { return (*uint32)(unsafe.Pointer(&g.state[offset])) }

// Field returns a pointer to the 64 bits at an offset of the guest's state.
func (g *Guest) Field(offset uint64) *uint64 { return (*uint64)(unsafe.Pointer(&g.state[offset])) }

// context returns a pointer to a word of the context.
func (g *Guest) context(offset uint64) *uint64 { return g.Field(contextAt + offset) }

// Call is a call to an exported function. While an import of one call is being answered, other
// calls of the guest may run, each on its own stack.
type Call struct {
	stack *stack
	sp    uint64
	slots [Slots]uint64 // parameters and results of the current import
}

// Depth returns the size of the stack in use, in bytes, while the call waits for the host.
func (c *Call) Depth() int {
	if c.stack == nil || c.sp == 0 {
		return 0
	}

	return int(uint64(c.stack.top()) - c.sp)
}

// errHost marks the value of a host function's panic.
var errHost = errors.New("(recovered from a host function)")

// ShrinkStack frees unused memory of the stack while the call waits for the host, and returns its
// Depth.
func (c *Call) ShrinkStack() int {
	depth := c.Depth()
	if depth > 0 {
		c.stack.shrink(uintptr(c.sp))
	}
	return depth
}

// Run calls a function with params, and stores the result in the first slot. It needs a host,
// because even a short call may have to leave: see [Guest.Fuel]. After [ErrNoStack], the function
// has not begun, and the guest is still usable.
func (c *Call) Run(g *Guest, f Export, params []uint64, host Host) error {
	return c.run(g, f.Address, params, host)
}

func (c *Call) run(g *Guest, address uint64, params []uint64, host Host) (err error) {
	if host == nil {
		return errors.New("a call of a guest needs a host")
	}
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

// grow implements memory.grow: it returns the old size in pages, or -1.
func (g *Guest) grow(pages uint64, host Host) uint64 {
	old := *g.Field(g.program.header.Pages)
	if old+pages > 1<<16 || !host.Grow(pages) {
		return 1<<64 - 1
	}

	g.SetSize((old + pages) * wasmPage)
	return old
}

// answer calls the host for an import. The parameters are copied, because other calls may use the
// context meanwhile.
func (c *Call) answer(g *Guest, number int, all []uint64, host Host) error {
	own := c.slots[:max(len(g.program.header.Imports[number].Params), 1)]
	copy(own, all)
	if err := contain(func() { host.Call(number, own) }); err != nil {
		return err
	}
	all[0] = own[0]
	return nil
}

// contain calls a function of the host, and converts a panic to an error.
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
