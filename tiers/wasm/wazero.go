package wasm

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"reflect"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/machine/watchdog/watchwazero"
)

// wazeroProgram is the interpreter as compiled by wazero for this processor.
type wazeroProgram struct{ *codecache.Code }

// compileWithWazero compiles the interpreter, or loads its code from the cache. announce is
// called before the code is compiled.
func compileWithWazero(
	ctx context.Context, cache *codecache.Cache, announce func(),
) (program, error) {
	code, err := cache.Compile(ctx, codecache.Module{
		ID: codeID(), Read: cpython.Module, Import: importForWazero, Announce: announce,
	})
	if err != nil {
		return nil, err
	}
	return wazeroProgram{code}, nil
}

func (wazeroProgram) reach() uint64 { return 0 }

func (wazeroProgram) Check() error { return nil }

func (p wazeroProgram) close() error { return p.Close() }

func (p wazeroProgram) start(ctx context.Context, in *instance) (machine, error) {
	module, err := p.Runtime.InstantiateModule(
		experimental.WithMemoryAllocator(ctx, allocator{in.mem}), p.Module, wazeroConfig(in),
	)
	if err != nil {
		return nil, err
	}
	return newWazeroMachine(in, module), nil
}

// allocator passes an instance's memory to wazero. The memory is allocated beforehand, because
// wazero's allocators cannot return an error.
type allocator struct{ memory linearMemory }

// Allocate returns the memory. wazero calls it once, during instantiation.
func (a allocator) Allocate(_, _ uint64) experimental.LinearMemory { return a.memory }

// wazeroConfig gives the guest no files, no arguments and no environment.
func wazeroConfig(in *instance) wazero.ModuleConfig {
	c := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(guestOutput{in, false}).WithStderr(guestOutput{in, true})
	if in.deterministic {
		// Without further options, wazero's clocks are fixed.
		return c.WithRandSource(mathrand.NewChaCha8([32]byte{'r', 'l', 'm'}))
	}

	wall := func() (int64, int32) {
		now := in.course.wall()
		return now.Unix(), int32(now.Nanosecond()) //nolint:gosec // less than a second
	}
	return c.WithRandSource(&in.course).WithWalltime(wall, sys.ClockResolution(time.Microsecond)).WithSysNanotime()
}

// importForWazero provides the guest's only imports: WASI without files, and the functions of the
// module rlm.
func importForWazero(ctx context.Context, runtime wazero.Runtime) error {
	wasi := runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	type list = []api.ValueType
	offer := func(
		b wazero.HostModuleBuilder, name string, f hostFunction, params, results list,
	) {
		b.NewFunctionBuilder().WithGoModuleFunction(watchwazero.HostFunction(
			func(ctx context.Context, _ api.Module, stack []uint64) { f(ctx, bound(ctx), stack) },
		), params, results).Export(name)
	}

	// wazero's proc_exit frees the guest's memory while the guest is still on the stack.
	// hostExit only ends the run; the sandbox is discarded later.
	offer(wasi, "proc_exit", hostExit, list{i32}, nil)
	// Instances are reused, so the guest must not change its descriptors, the only state of
	// an instance on the host. wazero's fd_filestat_set_times panics for the streams.
	for name, params := range map[string]list{
		"fd_close": {i32}, "fd_renumber": {i32, i32}, "fd_fdstat_set_flags": {i32, i32},
		"fd_filestat_set_times": {i32, i64, i64, i32},
	} {
		offer(wasi, name, hostRefuse, params, list{i32})
	}
	if _, err := wasi.Instantiate(ctx); err != nil {
		return fmt.Errorf("cannot provide WASI: %w", err)
	}

	rlm := runtime.NewHostModuleBuilder("rlm")
	offer(rlm, "call", hostCall, list{i32, i32}, list{i64})
	offer(rlm, "take", hostTake, list{i32, i32}, nil)
	offer(rlm, "yield", hostYield, nil, nil)
	offer(rlm, "switch", hostSwitch, list{i32, i32}, nil) // a thread, the top of its stack
	// The parameters are a function, its state, its blocks and their number; the result is the
	// number of digested blocks.
	offer(rlm, "hash", hostHash, list{i32, i32, i32, i32}, list{i32})
	if _, err := rlm.Instantiate(ctx); err != nil {
		return fmt.Errorf("cannot provide the host's functions: %w", err)
	}
	return nil
}

// wazeroMachine is a guest that wazero runs.
type wazeroMachine struct {
	in          *instance
	module      api.Module
	fuelCount   watchwazero.Fuel
	stackGlobal api.MutableGlobal
}

func newWazeroMachine(in *instance, module api.Module) *wazeroMachine {
	return &wazeroMachine{
		in: in, module: module,
		fuelCount:   watchwazero.FuelOf(module),
		stackGlobal: module.ExportedGlobal("__stack_pointer").(api.MutableGlobal),
	}
}

func (m *wazeroMachine) function(name string) function {
	return wazeroFunction{m.in, m.fuelCount, m.module.ExportedFunction(name)}
}

func (m *wazeroMachine) memory() []byte {
	memory := m.module.Memory()
	b, _ := memory.Read(0, memory.Size())
	return b
}

func (m *wazeroMachine) grow(pages uint32) bool {
	_, ok := m.module.Memory().Grow(pages)
	return ok
}

func (m *wazeroMachine) fuel() int64                    { return m.fuelCount.Left() }
func (m *wazeroMachine) setFuel(units int64)            { m.fuelCount.Set(units) }
func (m *wazeroMachine) stackPointer() uint32           { return uint32(m.stackGlobal.Get()) }
func (m *wazeroMachine) setStackPointer(address uint32) { m.stackGlobal.Set(uint64(address)) }

func (m *wazeroMachine) close() {
	_ = m.module.Close(context.Background()) // cannot fail without files
}

type wazeroFunction struct {
	in   *instance
	fuel watchwazero.Fuel
	api.Function
}

// boundKey is the context key of the instance that calls a host function.
type boundKey struct{}

func bound(ctx context.Context) *instance { return ctx.Value(boundKey{}).(*instance) }

func (f wazeroFunction) call(ctx context.Context, stack []uint64) error {
	err := watchwazero.Call(context.WithValue(ctx, boundKey{}, f.in), f.Function, f.fuel, stack)
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		return exitError{exit.ExitCode()}
	}
	return err
}

// shrinkStack frees nothing. It returns the size of the stack that wazero keeps for a function,
// which grows with the depth of the guest's calls. wazero bounds the stack of one function, but not
// the total, and has no method that returns its size. If the field disappears, a test fails.
func (f wazeroFunction) shrinkStack() int {
	return reflect.ValueOf(f.Function).Elem().FieldByName("stack").Len()
}
