package wasm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

const wasmPage = 64 << 10

// instance is one interpreter. After a trap or a kill, only close is allowed. Never close it
// while the guest runs: that unmaps its memory.
type instance struct {
	engine   *engine
	accounts *session.Accounts
	machine  machine
	mem      linearMemory
	watch    *memoryWatch
	runFn    function
	limit    uint64 // limit of its memory, in bytes
	room     uint64 // for texts in addition to limit
	texts    []mappedText

	deterministic bool
	course        course // the running snippet's course
	pending       session.Reply
	stack         [3]uint64
	threads       threads

	burnt   uint64 // fuel of all finished slices
	granted uint64 // fuel of the current slice

	code          int  // the result of the last run
	isInterrupted bool // KeyboardInterrupt was raised in the run
}

// errKilled ends a guest that the host stops. The accounts hold the reason.
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

	in.accounts, in.course = accounts, course{}
	in.mem.prefault()
	if from != nil {
		if err := in.restoreTexts(from.texts); err != nil {
			in.close()
			return nil, err
		}
		from.apply(in.mem)
	}
	if e.name == engineWazero || accounts.Config().Deterministic {
		in.setWord(e.layout.Recursion, wazeroRecursion)
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
	in.mem, err = e.image.allocate(size, limit, room, e.program.reach(), in.watch)
	if err != nil {
		return nil, err
	}
	in.deterministic = accounts.Config().Deterministic
	if in.machine, err = e.program.start(ctx, in); err != nil {
		in.mem.Free()
		return nil, fmt.Errorf("cannot start the interpreter: %w", err)
	}

	in.runFn = in.machine.function("run")
	in.threads.begin(in.runFn)
	return in, nil
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

// close frees the instance and its memory.
func (in *instance) close() {
	if in.machine != nil {
		in.machine.close()
		in.machine = nil
	}
}

// run runs a snippet. After an error, the guest is unusable.
func (in *instance) run(ctx context.Context, source string, flags int) (code int, err error) {
	in.code, in.isInterrupted = session.Died, false
	in.refuel(0) // before put, which must not use up fuel left over from an earlier run
	at, err := in.put(ctx, source)
	if err != nil {
		return in.code, err
	}

	in.stack = [3]uint64{uint64(at), uint64(len(source)), uint64(uint32(flags))}
	in.threads.begin(in.runFn)
	err = in.runFn.call(ctx, in.stack[:])
	if failed := in.threads.end(); failed != nil {
		err = failed // main only failed because it had to end
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
		var err error
		if at, err = in.ask(ctx, "alloc", uint64(len(source))); err != nil {
			return 0, err
		}
		if at == 0 {
			return 0, errNoRoom
		}
	}

	room, ok := in.view(at, uint32(len(source)))
	if !ok {
		return 0, errNoRoom
	}
	copy(room, source)
	return at, nil
}

// ask calls a function of the guest that has at most one result.
func (in *instance) ask(ctx context.Context, name string, params ...uint64) (uint32, error) {
	stack := append(params, 0)[:max(len(params), 1)]
	err := in.machine.function(name).call(ctx, stack)
	return uint32(stack[0]), err
}

// view returns a part of the guest's memory, or false if it is outside.
func (in *instance) view(address, length uint32) ([]byte, bool) {
	memory := in.machine.memory()
	if end := uint64(address) + uint64(length); end <= uint64(len(memory)) {
		return memory[address:end:end], true
	}
	return nil, false
}

// boot runs Python source outside a snippet, to load the Python runtime. It returns the output.
func (in *instance) boot(ctx context.Context, source string) (stdout string, err error) {
	if err := in.accounts.Begin(ctx, tiers.Job{}); err != nil {
		return "", err
	}
	in.refuel(0) // a new instance has unlimited fuel, and wazero's watchdog needs yields
	at, err := in.ask(ctx, "alloc", uint64(len(source)))
	if err != nil {
		return "", err
	}

	copy(in.machine.memory()[at:], source)
	code, err := in.ask(ctx, "boot", uint64(at), uint64(len(source)))
	result := in.accounts.End(0)
	if err == nil && code != 0 {
		err = errors.New("it raised an exception")
	}

	if err != nil {
		return "", fmt.Errorf(
			"cannot load the Python runtime: %w: %s", err, strings.TrimSpace(result.Stderr),
		)
	}
	if _, err := in.ask(ctx, "free", uint64(at)); err != nil {
		return "", err
	}

	_, err = in.ask(ctx, "settle")
	return result.Stdout, err
}

func (in *instance) readLayout(ctx context.Context) (layout, error) {
	var l layout
	var values [3]uint32
	for i, name := range []string{"input", "input_size", "words"} {
		var err error
		if values[i], err = in.ask(ctx, name); err != nil {
			return l, err
		}
	}

	words, ok := in.view(values[2], 20)
	if !ok {
		return l, io.ErrUnexpectedEOF
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(words[4*i:]) }
	return layout{
		Input: values[0], InputSize: values[1],
		EvalBreaker: word(0), AsyncBit: word(1), AsyncExc: word(2), Interrupt: word(3),
		Recursion: word(4),
	}, nil
}

// word reads a number from the guest's memory. Outside the memory, all numbers are 0.
func (in *instance) word(address uint32) uint32 {
	b, ok := in.view(address, 4)
	if !ok {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// setWord writes a number into the guest's memory. Outside the memory, it does nothing.
func (in *instance) setWord(address, value uint32) {
	if b, ok := in.view(address, 4); ok {
		binary.LittleEndian.PutUint32(b, value)
	}
}

// Flags of a reply, above its length.
const (
	replyFailed = 1 << 32
	replyASCII  = 1 << 33
)

// hostCall answers a request. The guest then allocates room and fetches the answer with hostTake.
func hostCall(_ context.Context, in *instance, stack []uint64) {
	req, ok := in.view(uint32(stack[0]), uint32(stack[1]))
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

	if len(req) > 0 {
		switch req[0] {
		case 'n':
			in.clearInterrupt() // it was meant for the previous variable
		case 'c', 'w': // a function of the caller may have loaded a C library
			in.checkFaults()
		}
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
func hostTake(_ context.Context, in *instance, stack []uint64) {
	reply := in.pending
	in.pending = session.Reply{}
	n := uint32(stack[1])
	if n == 0 {
		return
	}

	dst, ok := in.view(uint32(stack[0]), n)
	if !ok || int(n) != len(reply.Data) {
		panic(errBadPointer)
	}
	if err := reply.CopyTo(dst); err != nil {
		in.accounts.Fail(err)
		panic(errKilled)
	}
}

func hostExit(_ context.Context, _ *instance, stack []uint64) {
	panic(exitError{uint32(stack[0])})
}

// hostRefuse answers ENOTSUP.
func hostRefuse(_ context.Context, _ *instance, stack []uint64) { stack[0] = 58 }
