//go:build linux && (amd64 || arm64)

package wasm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/machine/aot"
	"github.com/rlmhq/rlm/internal/machine/cpython"
)

// aotProgram is the interpreter as compiled ahead of time by scripts/wasm.
type aotProgram struct {
	*aot.Program
	hosts        []hostFunction // by the number of the import
	relay        *wasiRelay
	stackPointer uint64 // the address of the global
}

// loadCode maps the machine code and tests it. It uses the code that is appended to the program or
// cached, and otherwise unpacks it.
func loadCode(o Options) (*aot.Program, error) {
	code, err := attachedCode(codeSum())
	if err != nil {
		code, err = o.cachedCode()
	}
	if err != nil {
		o.unpackAhead() // if no code is cached, neither is the image
		blob, err := cpython.Code()
		if err != nil {
			return nil, err
		}
		if code, err = aot.Load(blob); err != nil {
			return nil, err
		}
	}
	if err := testCode(code); err != nil {
		return nil, errors.Join(err, code.Close())
	}
	return code, nil
}

// testCode checks that the code belongs to the module, that it returns, and that it traps.
func testCode(code *aot.Program) error {
	if cpython.MachineCode().Module != cpython.Manifest().Module.SHA256 {
		return errors.New("the machine code was made of another module")
	}
	var space unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &space); err != nil {
		return err
	}
	if err := checkSpace(code.Reach(), space.Cur); err != nil {
		return err
	}
	m, err := newTestMemory(code.Reach())
	if err != nil {
		return err
	}
	defer m.Free()
	state, err := m.state()
	if err != nil {
		return err
	}
	guest, err := code.NewGuest(state, m.used)
	if err != nil {
		return err
	}
	defer guest.Close()

	stack := []uint64{1}
	size, _ := code.Export("input_size")
	if err := new(aot.Call).Run(guest, size, stack, testHost{}); err != nil || stack[0] == 0 {
		return fmt.Errorf("the machine code does not work here: %d, %w", stack[0], err)
	}
	// Without the image, an allocation reads beyond the memory.
	alloc, _ := code.Export("alloc")
	err = new(aot.Call).Run(guest, alloc, []uint64{16}, testHost{})
	if _, isTrap := errors.AsType[aot.TrapError](err); !isTrap {
		return fmt.Errorf("the machine code does not trap here: %w", err)
	}
	return nil
}

// testHost is the host of the functions that testCode calls, which call no import. On a busy
// machine, a guest calls Preempt even in such functions.
type testHost struct{}

// Call implements [aot.Host].
func (testHost) Call(int, []uint64) {}

// Grow implements [aot.Host].
func (testHost) Grow(uint64) bool { return false }

// Preempt implements [aot.Host].
func (testHost) Preempt() {}

// leastMemories is the number of sandboxes for which a process must have address space.
const leastMemories = 128

// checkSpace returns an error if a process with this limit of address space cannot reserve reach
// bytes for leastMemories memories. With a low limit, it could run one or two sandboxes, where
// wazero could run dozens.
func checkSpace(reach, limit uint64) error {
	if need := leastMemories * reach; limit < need {
		return fmt.Errorf("the limit of address space is %d GiB, but sandboxes need %d: raise ulimit -v",
			limit>>30, need>>30)
	}
	return nil
}

func newAOTProgram(code *aot.Program) (program, error) {
	p := &aotProgram{Program: code, relay: &wasiRelay{imports: code.Imports()}}
	var hasStack bool
	p.stackPointer, hasStack = code.Global("__stack_pointer")
	if _, hasFuel := code.Global("fuel"); !hasFuel || !hasStack {
		return nil, errors.New("the machine code has no fuel")
	}

	for _, f := range code.Imports() {
		host := hostFunctions[f.Module+"."+f.Name]
		if host == nil {
			host = p.relay.function(f.Name)
		}
		p.hosts = append(p.hosts, host)
	}
	return p, nil
}

func (p *aotProgram) reach() uint64 { return p.Reach() }

// close leaves the code to the other tiers of the process.
func (p *aotProgram) close() error { return p.relay.close() }

func (p *aotProgram) start(_ context.Context, in *instance) (machine, error) {
	state, err := in.mem.(*mapping).state()
	if err != nil {
		return nil, err
	}
	m := &aotMachine{in: in, program: p, random: &in.course, clocks: systemClocks{&in.course}}
	if in.deterministic {
		m.random, m.clocks = mathrand.NewChaCha8([32]byte{'r', 'l', 'm'}), newFixedClocks()
	}
	m.guest, err = p.NewGuest(state, in.mem.own())
	return m, err
}

// aotMachine is a guest that runs code compiled ahead of time.
type aotMachine struct {
	in      *instance
	program *aotProgram
	guest   *aot.Guest
	random  io.Reader
	clocks  clocks
	wasi    *relayed // nil until needed
}

func (m *aotMachine) relayed() **relayed { return &m.wasi }

func (m *aotMachine) function(name string) function {
	export, ok := m.program.Export(name)
	if !ok {
		panic("wasm: the interpreter has no function " + name)
	}
	return &aotFunction{machine: m, export: export}
}

func (m *aotMachine) memory() []byte {
	return m.in.mem.bytes()[:m.guest.Size()]
}

func (m *aotMachine) grow(pages uint32) bool {
	if !m.Grow(uint64(pages)) {
		return false
	}
	m.guest.SetSize(m.guest.Size() + uint64(pages)*wasmPage)
	return true
}

// Grow adds pages to the memory, or returns false if it cannot. The caller then updates the guest's
// size.
func (m *aotMachine) Grow(pages uint64) bool {
	size := m.guest.Size() + pages*wasmPage
	return size <= addressSpace && m.in.mem.Reallocate(size) != nil
}

func (m *aotMachine) fuel() int64         { return m.guest.Fuel() }
func (m *aotMachine) setFuel(units int64) { m.guest.SetFuel(units) }

func (m *aotMachine) stackPointer() uint32 {
	return *m.guest.Word(m.program.stackPointer)
}

func (m *aotMachine) setStackPointer(address uint32) {
	*m.guest.Word(m.program.stackPointer) = address
}

func (m *aotMachine) close() {
	m.wasi.close()
	m.guest.Close()
	m.in.mem.Free()
}

// aotFunction is a function of a guest, and its call.
type aotFunction struct {
	machine *aotMachine
	export  aot.Export
	running aot.Call
	ctx     context.Context //nolint:containedctx // the context of the running call
}

func (f *aotFunction) call(ctx context.Context, stack []uint64) error {
	f.ctx = ctx
	err := f.running.Run(f.machine.guest, f.export, stack, f)
	f.ctx = nil
	if exit, ok := errors.AsType[exitError](err); ok {
		return exit
	}
	return err
}

// Call answers an import.
func (f *aotFunction) Call(number int, slots []uint64) {
	f.machine.program.hosts[number](f.ctx, f.machine.in, slots)
}

// Grow answers memory.grow.
func (f *aotFunction) Grow(pages uint64) bool { return f.machine.Grow(pages) }

func (f *aotFunction) shrinkStack() int { return f.running.ShrinkStack() }

// Preempt lets the host's other work run first, and checks the limits.
func (f *aotFunction) Preempt() { f.machine.in.preempt() }

// hostFunctions are the imports that the host answers itself. wazero answers the rest of WASI.
var hostFunctions map[string]hostFunction

func init() { //nolint:gochecknoinits // the functions refer to the table
	const wasi = "wasi_snapshot_preview1."
	hostFunctions = map[string]hostFunction{
		"rlm.call": hostCall, "rlm.take": hostTake, "rlm.yield": hostYield, "rlm.switch": hostSwitch,
		"rlm.hash":         hostHash,
		wasi + "proc_exit": hostExit, wasi + "fd_close": hostRefuse, wasi + "fd_renumber": hostRefuse,
		wasi + "fd_fdstat_set_flags": hostRefuse, wasi + "fd_filestat_set_times": hostRefuse,
		wasi + "clock_time_get": hostClock, wasi + "random_get": hostRandom,
	}
}

// Errors of WASI.
const (
	wasiFault   = 21
	wasiInvalid = 28
	wasiIO      = 29
)

// hostClock answers clock_time_get(clock, precision, place).
func hostClock(_ context.Context, in *instance, stack []uint64) {
	clocks := in.machine.(*aotMachine).clocks
	var now int64
	switch tape := in.accounts.Tape(); uint32(stack[0]) {
	case 0:
		now = tape.Wall(clocks.wall())
	case 1:
		now = tape.Monotonic(clocks.monotonic())
	default:
		stack[0] = wasiInvalid
		return
	}

	place, ok := in.view(uint32(stack[2]), 8)
	if !ok {
		stack[0] = wasiFault
		return
	}
	binary.LittleEndian.PutUint64(place, uint64(now))
	stack[0] = 0
}

// hostRandom answers random_get(place, length).
func hostRandom(_ context.Context, in *instance, stack []uint64) {
	place, ok := in.view(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		stack[0] = wasiFault
		return
	}
	stack[0] = 0
	if _, err := io.ReadFull(in.machine.(*aotMachine).random, place); err != nil {
		stack[0] = wasiIO
	}
}

// clocks are a guest's clocks, in nanoseconds.
type clocks interface {
	wall() int64
	monotonic() int64
}

type systemClocks struct{ course *course }

// The monotonic clock is the host's, as in wazero and in the other tiers, because sessions move
// between guests and between tiers. time.Since is faster than a system call.
var (
	processBegun = time.Now()
	hostBegun    = hostMonotonic()
)

func hostMonotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // supported by every Linux
	return now.Nano()
}

func (c systemClocks) wall() int64    { return c.course.wall().UnixNano() }
func (systemClocks) monotonic() int64 { return hostBegun + int64(time.Since(processBegun)) }

// fixedClocks advance by a millisecond with each reading, as wazero's do.
type fixedClocks struct{ walls, monotonics int64 }

func newFixedClocks() *fixedClocks {
	const epoch = 1640995200000 // January 1, 2022, in milliseconds
	return &fixedClocks{walls: epoch - 1, monotonics: -1}
}

func (c *fixedClocks) wall() int64 {
	c.walls++
	return c.walls * int64(time.Millisecond)
}

func (c *fixedClocks) monotonic() int64 {
	c.monotonics++
	return c.monotonics * int64(time.Millisecond)
}
