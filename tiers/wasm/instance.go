package wasm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"runtime"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/tiers"
)

const (
	wasmPage = 64 << 10
	// slice is the fuel between two checks of the limits: about a millisecond of work.
	slice = 200_000
)

// instance is one interpreter. After a trap or a kill, only close is allowed. Never close it
// while the guest runs: that unmaps its memory.
type instance struct {
	engine   *engine
	accounts *session.Accounts
	module   api.Module
	mem      linearMemory
	watch    *memoryWatch
	runFn    api.Function
	limit    uint64 // of its memory, in bytes
	room     uint64 // for texts beyond it
	texts    []mappedText
	// fuel and stackPointer are the only mutable state outside the memory. The table never
	// changes, and the guest can neither open nor close a file descriptor.
	fuel, stackPointer api.MutableGlobal
	deterministic      bool
	pending            session.Reply
	stack              [3]uint64
	threads            threads

	burnt   uint64 // fuel of all finished slices
	granted uint64 // fuel of the current slice

	code          int  // the result of the last run
	isInterrupted bool // KeyboardInterrupt was raised in the run
}

// errKilled ends a guest that the host stops. The accounts know the reason.
var errKilled = errors.New("killed")

// exitError reports that the guest called exit.
type exitError struct{ code uint32 }

func (e exitError) Error() string { return fmt.Sprintf("the guest exited with code %d", e.code) }

// instantiate makes an interpreter over the image, or over a checkpoint.
func (e *engine) instantiate(
	ctx context.Context, accounts *session.Accounts, from *checkpoint,
) (*instance, error) {
	limit, err := e.memoryLimit(accounts.Limits().Memory)
	if err != nil {
		return nil, err
	}
	size := e.image.size
	if from != nil {
		size = from.size
	}

	room := roomForTexts(accounts, limit)
	plain := size == e.image.size && !accounts.Config().Deterministic
	in := e.idle.get(idleKey{limit, room, plain})
	if in == nil {
		if in, err = e.create(ctx, accounts, size, limit, room); err != nil {
			return nil, err
		}
	}

	in.accounts = accounts
	in.mem.prefault()
	if from != nil {
		if err := in.restoreTexts(from.texts); err != nil {
			in.close()
			return nil, err
		}
		from.apply(in.mem)
	}
	return in, nil
}

func (e *engine) memoryLimit(bytes int64) (uint64, error) {
	limit := uint64(bytes) / wasmPage * wasmPage
	if limit > 1<<32 {
		return 0, noMemory(
			"it cannot give a sandbox %d MiB of memory: its limit is 4096 MiB", bytes>>20,
		)
	}

	if least := e.image.size + 8<<20; limit < least {
		return 0, noMemory(
			"it cannot run Python in %d MiB of memory: it needs at least %d MiB",
			bytes>>20, least>>20,
		)
	}

	return limit, nil
}

// noMemory rejects a memory limit that another tier may be able to enforce.
func noMemory(format string, args ...any) error {
	return &tiers.RejectedError{
		Tier:    Name,
		Missing: "memory",
		Reason:  fmt.Sprintf(format, args...),
		Effects: tiers.EffectsNeverRan,
	}
}

// create instantiates the module over new memory of size bytes.
func (e *engine) create(
	ctx context.Context, accounts *session.Accounts, size, limit, room uint64,
) (*instance, error) {
	in := &instance{
		engine: e, accounts: accounts, limit: limit, room: room, watch: &memoryWatch{},
	}
	var err error
	if in.mem, err = e.image.allocate(size, limit, room, in.watch); err != nil {
		return nil, err
	}
	in.module, err = e.code.Runtime.InstantiateModule(
		withAllocator(ctx, in.mem), e.code.Module, in.config(),
	)
	if err != nil {
		in.mem.Free()
		return nil, fmt.Errorf("cannot start the interpreter: %w", err)
	}

	in.fuel = in.module.ExportedGlobal("fuel").(api.MutableGlobal)
	in.stackPointer = in.module.ExportedGlobal("__stack_pointer").(api.MutableGlobal)
	in.runFn = in.module.ExportedFunction("run")
	in.threads.begin(in.runFn)
	return in, nil
}

// config gives the guest no files, no arguments and no environment.
func (in *instance) config() wazero.ModuleConfig {
	c := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(guestOutput{in, false}).WithStderr(guestOutput{in, true})
	if in.accounts.Config().Deterministic {
		in.deterministic = true
		// Without further options, wazero's clocks are fixed.
		return c.WithRandSource(mathrand.NewChaCha8([32]byte{'r', 'l', 'm'}))
	}

	return c.WithRandSource(rand.Reader).WithSysWalltime().WithSysNanotime()
}

// guestOutput receives the output of the guest's C code.
type guestOutput struct {
	in     *instance
	stderr bool
}

func (w guestOutput) Write(b []byte) (int, error) {
	w.in.accounts.Print(w.stderr, b)
	return len(b), nil
}

// key is the context key of the instance that calls a host function.
type key struct{}

func (in *instance) bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, in)
}

func bound(ctx context.Context) *instance { return ctx.Value(key{}).(*instance) }

func (in *instance) memory() []byte {
	m := in.module.Memory()
	b, _ := m.Read(0, m.Size())
	return b
}

// close frees the instance and its memory.
func (in *instance) close() {
	if in.module != nil {
		_ = in.module.Close(context.Background()) // it cannot fail without files
		in.module = nil
	}
}

// run runs a snippet. After an error, the guest is unusable.
func (in *instance) run(ctx context.Context, source string, flags int) (code int, err error) {
	in.code, in.isInterrupted = session.Died, false
	in.refuel(0) // before put, which must not use up what an earlier run has left
	at, err := in.put(ctx, source)
	if err != nil {
		return in.code, err
	}

	in.stack = [3]uint64{uint64(at), uint64(len(source)), uint64(uint32(flags))}
	in.threads.begin(in.runFn)
	err = in.runFn.CallWithStack(in.bind(ctx), in.stack[:])
	if failed := in.threads.end(); failed != nil {
		err = failed // main was only told to end
	}
	if err != nil {
		return in.code, err
	}

	in.clearInterrupt()
	in.code = int(int32(in.stack[0]))

	return in.code, nil
}

// put writes a snippet's source into the guest and returns its address.
func (in *instance) put(ctx context.Context, source string) (uint32, error) {
	at := in.engine.layout.Input
	if len(source) > int(in.engine.layout.InputSize) {
		r, err := in.module.ExportedFunction("alloc").Call(in.bind(ctx), uint64(len(source)))
		if err != nil {
			return 0, err
		}
		if at = uint32(r[0]); at == 0 {
			return 0, errNoRoom
		}
	}

	if !in.module.Memory().WriteString(at, source) {
		return 0, errNoRoom
	}
	return at, nil
}

// boot runs Python source outside a snippet, to load the Python runtime.
func (in *instance) boot(ctx context.Context, source string) error {
	if err := in.accounts.Begin(ctx, tiers.Job{}); err != nil {
		return err
	}
	r, err := in.module.ExportedFunction("alloc").Call(in.bind(ctx), uint64(len(source)))
	if err != nil {
		return err
	}

	in.module.Memory().WriteString(uint32(r[0]), source)
	code, err := in.module.ExportedFunction("boot").Call(in.bind(ctx), r[0], uint64(len(source)))
	result := in.accounts.End(0)
	if err == nil && int32(code[0]) != 0 {
		err = errors.New("it raised an exception")
	}

	if err != nil {
		return fmt.Errorf(
			"cannot load the Python runtime: %w: %s", err, strings.TrimSpace(result.Stderr),
		)
	}
	if _, err := in.module.ExportedFunction("free").Call(in.bind(ctx), r[0]); err != nil {
		return err
	}

	_, err = in.module.ExportedFunction("settle").Call(in.bind(ctx))
	return err
}

func (in *instance) readLayout(ctx context.Context) (layout, error) {
	var l layout
	var values [3]uint32
	for i, name := range []string{"input", "input_size", "words"} {
		r, err := in.module.ExportedFunction(name).Call(in.bind(ctx))
		if err != nil {
			return l, err
		}
		values[i] = uint32(r[0])
	}

	words, ok := in.module.Memory().Read(values[2], 16)
	if !ok {
		return l, io.ErrUnexpectedEOF
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(words[4*i:]) }
	return layout{
		Input: values[0], InputSize: values[1],
		EvalBreaker: word(0), AsyncBit: word(1), AsyncExc: word(2), Interrupt: word(3),
	}, nil
}

// fuelUsed returns the exact fuel: all finished slices and the used part of the current one.
func (in *instance) fuelUsed() uint64 {
	left := int64(in.fuel.Get())
	return in.burnt + uint64(int64(in.granted)-left)
}

// refuel grants the guest its next slice, or the rest of the budget, after it has burnt fuel.
func (in *instance) refuel(burnt uint64) {
	in.burnt = burnt
	budget := in.accounts.Limits().Fuel
	in.granted = slice
	if budget > in.burnt {
		in.granted = min(slice, budget-in.burnt)
	}
	in.fuel.Set(in.granted)
}

// hostYield runs when the guest has used up a slice.
func hostYield(ctx context.Context, _ api.Module, _ []uint64) {
	in := bound(ctx)
	in.refuel(in.fuelUsed()) // a copy may use more than the slice had left
	in.accounts.BurnFuel(in.burnt)
	in.accounts.Yield()
	runtime.Gosched() // Go cannot interrupt a guest: the host's other work comes first here
	in.watchLimits()
}

// watchLimits stops a guest at its limits, or if its caller has canceled the run.
func (in *instance) watchLimits() {
	if in.accounts.Watch(in.interrupt) {
		panic(errKilled)
	}
}

// interrupt raises KeyboardInterrupt at the guest's next bytecode boundary, in the thread that
// runs. The class is immortal, so writing its address takes no reference.
func (in *instance) interrupt() {
	in.isInterrupted = true
	l, m := in.engine.layout, in.module.Memory()
	if at := in.threads.running.address; at != 0 { // the first words of its thread_t
		l.EvalBreaker, _ = m.ReadUint32Le(at)
		l.AsyncExc, _ = m.ReadUint32Le(at + 4)
	}
	m.WriteUint32Le(l.AsyncExc, l.Interrupt)
	breaker, _ := m.ReadUint32Le(l.EvalBreaker)
	m.WriteUint32Le(l.EvalBreaker, breaker|l.AsyncBit)
}

// clearInterrupt withdraws an interrupt that came after the end of its snippet.
func (in *instance) clearInterrupt() {
	if !in.isInterrupted {
		return
	}
	l, m := in.engine.layout, in.module.Memory()
	m.WriteUint32Le(l.AsyncExc, 0)
	breaker, _ := m.ReadUint32Le(l.EvalBreaker)
	m.WriteUint32Le(l.EvalBreaker, breaker&^l.AsyncBit)
}

// Flags of a reply, above its length.
const (
	replyFailed = 1 << 32
	replyASCII  = 1 << 33
)

// hostCall answers a request. The guest makes room and fetches the answer with hostTake.
func hostCall(ctx context.Context, m api.Module, stack []uint64) {
	in := bound(ctx)
	req, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		panic(errBadPointer)
	}
	in.pending = in.accounts.Handle(req)
	if in.accounts.Missing() != "" {
		panic(errKilled)
	}
	if in.pending.Failed && !in.isInterrupted && in.accounts.IsCanceled() {
		in.accounts.DelayInterrupt()
	}

	if len(req) == 0 || req[0] != 'o' {
		// After output, an interrupt would make the guest's buffer write the output again.
		in.watchLimits()
	}
	stack[0] = uint64(uint32(len(in.pending.Data)))
	if in.pending.Failed {
		stack[0] |= replyFailed
	}

	if in.pending.ASCII {
		stack[0] |= replyASCII
	}
}

var errBadPointer = errors.New("the guest passed an address outside its memory")

// hostTake copies the pending answer into the guest.
func hostTake(ctx context.Context, m api.Module, stack []uint64) {
	in := bound(ctx)
	reply := in.pending
	in.pending = session.Reply{}
	n := uint32(stack[1])
	if n == 0 {
		return
	}

	dst, ok := m.Memory().Read(uint32(stack[0]), n)
	if !ok || int(n) != len(reply.Data) {
		panic(errBadPointer)
	}
	if err := reply.CopyTo(dst); err != nil {
		in.accounts.Fail(err)
		panic(errKilled)
	}
}

func hostExit(_ context.Context, _ api.Module, stack []uint64) {
	panic(exitError{uint32(stack[0])})
}

// hostRefuse answers ENOTSUP.
func hostRefuse(_ context.Context, _ api.Module, stack []uint64) { stack[0] = 58 }
