package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/rlmhq/rlm/scripts/wasm/internal/wasmbin"
)

const stackPointerGlobal = "__stack_pointer"

// Flags in the result of rlm.call, above the 32 bits of the reply's length.
const (
	replyError = 1 << 32
	replyASCII = 1 << 33
)

// guest is one instance of the module. It is deterministic, because its clocks and random numbers
// are artificial, and it has no file system.
type guest struct {
	mod    api.Module
	memory *memory
	output bytes.Buffer
	// calls are the requests that the guest made.
	calls []string
	// answer returns the reply to a request, and its flags.
	answer func(request string) (reply string, flags uint64)
	// pending is the reply that the guest has not fetched yet.
	pending string
}

// host is a runtime with the module's imports.
type host struct {
	runtime wazero.Runtime
}

type guestKey struct{}

// guestOf returns the guest that called an import.
func guestOf(ctx context.Context) *guest { return ctx.Value(guestKey{}).(*guest) }

func newHost(ctx context.Context) (*host, error) {
	r := wazero.NewRuntime(ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}

	_, err := r.NewHostModuleBuilder("rlm").
		NewFunctionBuilder().WithFunc(call).Export("call").
		NewFunctionBuilder().WithFunc(take).Export("take").
		NewFunctionBuilder().WithFunc(yieldUnexpected).Export("yield").
		NewFunctionBuilder().WithFunc(switchUnexpected).Export("switch").
		NewFunctionBuilder().WithFunc(digestNothing).Export("hash").
		Instantiate(ctx)
	if err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return &host{runtime: r}, nil
}

func (h *host) close(ctx context.Context) error { return h.runtime.Close(ctx) }

// call records the request, answers it and leaves the reply pending.
func call(ctx context.Context, m api.Module, ptr, size uint32) uint64 {
	request, ok := m.Memory().Read(ptr, size)
	if !ok {
		panic("rlm.call: bad pointer")
	}
	g := guestOf(ctx)
	g.calls = append(g.calls, string(request))
	var flags uint64
	g.pending, flags = g.answer(string(request))
	return uint64(len(g.pending)) | flags
}

// take copies the pending reply, or as much of it as the guest requests, and drops the reply.
func take(ctx context.Context, m api.Module, dst, size uint32) {
	g := guestOf(ctx)
	if uint64(size) > uint64(len(g.pending)) || !m.Memory().WriteString(dst, g.pending[:size]) {
		panic("rlm.take: bad pointer")
	}
	g.pending = ""
}

// refuse refuses every host call. It is used unless a test sets a different answer.
func refuse(string) (reply string, flags uint64) {
	return "there is no host yet", replyError | replyASCII
}

func yieldUnexpected() { panic("rlm.yield: the fuel should be endless") }

func switchUnexpected(_, _ uint32) { panic("rlm.switch: there is one thread") }

// digestNothing leaves all blocks to the guest.
func digestNothing(_, _, _, _ uint32) uint32 { return 0 }

func (h *host) compile(ctx context.Context, module []byte) (wazero.CompiledModule, error) {
	return h.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, 2), module)
}

// instantiate starts a guest. Its memory begins as a copy of image, if there is
// one.
func (h *host) instantiate(
	ctx context.Context, code wazero.CompiledModule, image []byte,
) (*guest, error) {
	g := &guest{memory: &memory{buf: bytes.Clone(image)}, answer: refuse}
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(
		func(_, limit uint64) experimental.LinearMemory {
			g.memory.limit = limit
			return g.memory
		}))

	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(&g.output).WithStderr(&g.output).
		WithRandSource(rand.NewChaCha8([32]byte{}))
	mod, err := h.runtime.InstantiateModule(ctx, code, config)
	if err != nil {
		return nil, err
	}

	g.mod = mod
	return g, nil
}

// memory is a guest's memory. It may begin longer than the module's minimum, which is the size that
// wazero first requests.
type memory struct {
	buf   []byte
	limit uint64
}

// Reallocate returns the memory grown to size, or nil if that is not allowed.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		return nil
	}
	if size > uint64(len(m.buf)) {
		m.buf = append(m.buf, make([]byte, size-uint64(len(m.buf)))...)
	}
	return m.buf
}

// Free does nothing, because the garbage collector frees the memory.
func (m *memory) Free() {}

func (g *guest) call(ctx context.Context, name string, args ...uint64) (uint32, error) {
	ctx = context.WithValue(ctx, guestKey{}, g)
	results, err := g.mod.ExportedFunction(name).Call(ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", name, err, g.output.String())
	}
	if len(results) == 0 {
		return 0, nil
	}
	return uint32(results[0]), nil
}

// succeed calls an export that returns a status, which is 0 for success.
func (g *guest) succeed(ctx context.Context, name string, args ...uint64) error {
	status, err := g.call(ctx, name, args...)
	if err == nil && status != 0 {
		err = fmt.Errorf("%s returned %d\n%s", name, int32(status), g.output.String())
	}
	return err
}

// put copies data into memory that the guest allocates.
func (g *guest) put(ctx context.Context, data []byte) (uint32, error) {
	ptr, err := g.call(ctx, "alloc", uint64(len(data)))
	if err != nil {
		return 0, err
	}
	if ptr == 0 || !g.mod.Memory().Write(ptr, data) {
		return 0, errors.New("the guest has no memory left")
	}
	return ptr, nil
}

// boot runs Python in the guest.
func (g *guest) boot(ctx context.Context, source []byte) error {
	ptr, err := g.put(ctx, source)
	if err != nil {
		return err
	}
	if err := g.succeed(ctx, "boot", uint64(ptr), uint64(len(source))); err != nil {
		return err
	}

	_, err = g.call(ctx, "free", uint64(ptr))
	return err
}

// fuel returns the guest's fuel.
func (g *guest) fuel() int64 {
	return int64(g.mod.ExportedGlobal(wasmbin.FuelGlobal).Get())
}
