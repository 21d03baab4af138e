package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/rlmhq/rlm/internal/machine/aot"
	"github.com/rlmhq/rlm/internal/machine/watchdog/watchwazero"
)

// wasiRelay answers the rarely used functions of WASI as wazero does, so that a guest has the same
// system with every engine. A small module, which wazero interprets, shares the guest's memory and
// passes each call on to wazero's function.
type wasiRelay struct {
	imports []aot.Signature // the guest's imports

	mu      sync.Mutex // guards the fields below
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// relayed is the small module of one guest.
type relayed struct{ module api.Module }

// function returns the host function that passes calls of the named function on.
func (r *wasiRelay) function(name string) hostFunction {
	return func(ctx context.Context, in *instance, stack []uint64) {
		module, err := r.moduleOf(ctx, in)
		if err == nil {
			err = wazeroFunction{in, watchwazero.Fuel{}, module.ExportedFunction(name)}.call(ctx, stack)
		}
		if err != nil {
			panic(err)
		}
	}
}

// moduleOf returns the relay module of a guest, with the guest's memory in its current state.
func (r *wasiRelay) moduleOf(ctx context.Context, in *instance) (api.Module, error) {
	m := in.machine.(relayUser)
	slot := m.relayed()
	if *slot == nil {
		module, err := r.start(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("cannot answer WASI: %w", err)
		}
		*slot = &relayed{module}
	}

	memory := (*slot).module.Memory()
	missing := uint64(len(in.machine.memory())) - uint64(memory.Size())
	if _, ok := memory.Grow(uint32(missing / wasmPage)); !ok {
		return nil, errors.New("cannot answer WASI: the memory is too large")
	}
	return (*slot).module, nil
}

// relayUser is a machine that holds a module of the relay.
type relayUser interface{ relayed() **relayed }

func (r *wasiRelay) start(ctx context.Context, in *instance) (api.Module, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.module == nil {
		if err := r.prepare(ctx); err != nil {
			return nil, err
		}
	}
	return r.runtime.InstantiateModule(
		experimental.WithMemoryAllocator(ctx, allocator{borrowedMemory{in.mem, in.machine}}),
		r.module, wazeroConfig(in),
	)
}

func (r *wasiRelay) prepare(ctx context.Context) error {
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	err := importForWazero(ctx, runtime)
	var module wazero.CompiledModule
	if err == nil {
		module, err = runtime.CompileModule(ctx, assembleRelay(r.imports))
	}
	if err != nil {
		return errors.Join(err, runtime.Close(ctx))
	}
	r.runtime, r.module = runtime, module
	return nil
}

func (r *wasiRelay) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runtime == nil {
		return nil
	}
	return r.runtime.Close(context.Background())
}

func (r *relayed) close() {
	if r != nil {
		_ = r.module.Close(context.Background()) // it cannot fail without files
	}
}

// borrowedMemory is the memory of a machine; only the machine may grow or free it.
type borrowedMemory struct {
	linearMemory
	machine machine
}

func (m borrowedMemory) Reallocate(size uint64) []byte {
	if all := m.machine.memory(); size <= uint64(len(all)) {
		return all[:size]
	}
	return nil
}

func (borrowedMemory) Free() {}

var valueTypes = map[rune]byte{
	'i': api.ValueTypeI32, 'I': api.ValueTypeI64, 'f': api.ValueTypeF32, 'F': api.ValueTypeF64,
}

// assembleRelay makes a WebAssembly module with a page of memory, and a function for each import
// that calls the import with its own parameters.
func assembleRelay(imports []aot.Signature) []byte {
	number := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	list := func(items [][]byte) []byte {
		return append(number(len(items)), bytes.Join(items, nil)...)
	}
	text := func(s string) []byte { return append(number(len(s)), s...) }
	types := func(letters string) []byte {
		b := number(len(letters))
		for _, letter := range letters {
			b = append(b, valueTypes[letter])
		}
		return b
	}

	var kinds, imported, functions, exports, bodies [][]byte
	for i, f := range imports {
		kinds = append(kinds, slices.Concat([]byte{0x60}, types(f.Params), types(f.Result)))
		imported = append(imported, slices.Concat(text(f.Module), text(f.Name), []byte{0}, number(i)))
		functions = append(functions, number(i))
		exports = append(exports, slices.Concat(text(f.Name), []byte{0}, number(len(imports)+i)))

		body := []byte{0} // no locals
		for p := range f.Params {
			body = append(append(body, 0x20), number(p)...)
		}
		body = slices.Concat(body, []byte{0x10}, number(i), []byte{0x0b})
		bodies = append(bodies, append(number(len(body)), body...))
	}
	exports = append(exports, append(text("memory"), 2, 0))

	module := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id      byte
		content []byte
	}{
		{1, list(kinds)},
		{2, list(imported)},
		{3, list(functions)},
		{5, []byte{1, 0, 1}}, // the maximum is arbitrary
		{7, list(exports)},
		{10, list(bodies)},
	} {
		module = slices.Concat(module, []byte{s.id}, number(len(s.content)), s.content)
	}
	return module
}
