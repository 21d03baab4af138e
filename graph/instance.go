package graph

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// slice is the fuel between two looks at the limits: about a millisecond of work.
const slice = 200_000

// instance is one copy of the engine over a view of the state. After a trap only close is
// allowed.
type instance struct {
	graph    *Graph
	module   api.Module
	memory   *memory
	fuel     api.MutableGlobal
	noise    noise
	isBroken bool

	// Of the call that runs:
	job      job
	ctx      context.Context
	deadline time.Time
	left     uint64 // fuel after the current slice
	stopped  error  // why the host ended the call
}

// job is one call of the engine.
type job struct {
	operation uint32
	request   []byte
	input     io.Reader // for hostRead
	output    io.Writer // for hostWrite
	isLoad    bool      // LoadTimeout bounds it, and no fuel
}

// instantiate makes a copy of the engine over the last state.
func (g *Graph) instantiate(ctx context.Context) (*instance, error) {
	memory, err := g.state.view()
	if err != nil {
		return nil, err
	}
	in := &instance{graph: g, memory: memory}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(&in.noise).WithStderr(&in.noise).
		WithRandSource(rand.Reader).WithSysWalltime().WithSysNanotime()
	ctx = experimental.WithMemoryAllocator(ctx, allocator{memory})
	in.module, err = g.engine.Runtime.InstantiateModule(ctx, g.engine.Module, config)
	if err != nil {
		memory.Free()
		return nil, fmt.Errorf("cannot start the graph's engine: %w", err)
	}

	in.fuel = in.module.ExportedGlobal("fuel").(api.MutableGlobal)
	return in, nil
}

// allocator gives wazero the memory of an instance.
type allocator struct{ memory *memory }

func (a allocator) Allocate(_, _ uint64) experimental.LinearMemory { return a.memory }

// noise keeps the beginning of what the engine prints: the reason of a trap.
type noise struct{ bytes.Buffer }

func (n *noise) Write(b []byte) (int, error) {
	if room := 1024 - n.Len(); room > 0 {
		n.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// start writes the engine's data into fresh memory and makes an empty graph.
func (in *instance) start(ctx context.Context) error {
	e := in.graph.engine
	if !in.module.Memory().Write(e.start, e.data) {
		return errors.New("the engine's memory has no room for its data")
	}
	in.begin(ctx, job{isLoad: true})
	code, err := in.module.ExportedFunction("start").Call(in.bind(ctx))
	if err == nil && code[0] != 0 {
		err = errors.New("it cannot make an empty graph")
	}

	if err != nil {
		return fmt.Errorf("cannot start the graph's engine: %w", in.explain(err))
	}
	return nil
}

func (in *instance) begin(ctx context.Context, job job) {
	config := in.graph.config
	in.job, in.ctx, in.stopped = job, ctx, nil
	in.memory.refused = false
	in.noise.Reset()
	in.deadline, in.left = time.Now().Add(config.Timeout), config.Fuel
	if job.isLoad {
		in.deadline, in.left = time.Now().Add(config.LoadTimeout), 1<<62
	}

	in.refuel()
}

// refuel grants the next slice.
func (in *instance) refuel() {
	grant := min(slice, in.left)
	in.left -= grant
	in.fuel.Set(grant)
}

// call runs one operation and returns a copy of its answer, without the byte of success.
func (in *instance) call(ctx context.Context, job job) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in.begin(ctx, job)
	in.isBroken = true // until the call has returned
	answer, err := in.exchange(in.bind(ctx), job)
	if err != nil {
		return nil, in.explain(err)
	}
	in.isBroken = false

	if in.stopped != nil { // an input or an output has failed
		return nil, in.stopped
	}
	if answer[0] != 0 {
		return nil, failure(answer[0], &decoder{data: answer[1:]}, in.graph.config)
	}
	return answer[1:], nil
}

func (in *instance) exchange(ctx context.Context, job job) ([]byte, error) {
	at, err := in.module.ExportedFunction("allocate").Call(ctx, uint64(len(job.request)))
	if err != nil {
		return nil, err
	}
	if !in.module.Memory().Write(uint32(at[0]), job.request) {
		return nil, errMalformed
	}
	place, err := in.module.ExportedFunction("call").Call(ctx, uint64(job.operation))
	if err != nil {
		return nil, err
	}

	start, length := uint32(place[0]), uint32(place[0]>>32)
	if most := in.graph.config.MaxBytes + answerExtra; length == 0 || uint64(length) > uint64(most) {
		return nil, fmt.Errorf("the engine's answer has %d bytes", length)
	}
	answer, ok := in.module.Memory().Read(start, length)
	if !ok {
		return nil, errMalformed
	}
	return bytes.Clone(answer), nil
}

// answerExtra is the room for what an answer has besides its bounded rows.
const answerExtra = 4 << 20

// explain turns the error of a call that did not return into one for the caller.
func (in *instance) explain(err error) error {
	config := in.graph.config
	switch {
	case in.stopped != nil:
		return in.stopped
	case in.memory.refused:
		return &LimitError{"MaxMemory", fmt.Sprintf("%d MiB", config.MaxMemory>>20)}
	case strings.Contains(err.Error(), "stack overflow"), strings.Contains(err.Error(), "out of bounds"):
		return &QueryError{Message: "it is nested too deeply for the engine"}
	}

	config.Logger.Warn("a graph's engine failed", "error", err, "output", in.noise.String())
	message, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("the graph's engine failed, the graph is unchanged: %s: %s",
		message, strings.TrimSpace(in.noise.String()))
}

func (in *instance) close() {
	_ = in.module.Close(context.Background()) // it cannot fail without files
}

// key is the context key of the instance that calls a host function.
type key struct{}

func (in *instance) bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, in)
}

func bound(ctx context.Context) *instance { return ctx.Value(key{}).(*instance) }

var (
	errStopped    = errors.New("stopped")
	errBadPointer = errors.New("the engine passed an address outside its memory")
)

// hostYield runs when a slice of fuel is used up, and ends a call at its limits.
func hostYield(ctx context.Context, _ api.Module, _ []uint64) {
	in := bound(ctx)
	config := in.graph.config
	runtime.Gosched() // Go cannot interrupt a guest
	switch {
	case in.ctx.Err() != nil:
		in.stopped = context.Cause(in.ctx)
	case time.Now().After(in.deadline) && in.job.isLoad:
		in.stopped = &LimitError{"LoadTimeout", config.LoadTimeout.String()}
	case time.Now().After(in.deadline):
		in.stopped = &LimitError{"Timeout", config.Timeout.String()}
	case in.left == 0:
		in.stopped = &LimitError{"Fuel", fmt.Sprint(config.Fuel)}
	default:
		in.refuel()
		return
	}

	panic(errStopped)
}

// hostRead fills a buffer of the guest from the job's input: -1 is an error.
func hostRead(ctx context.Context, m api.Module, stack []uint64) {
	in := bound(ctx)
	buffer, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		panic(errBadPointer)
	}
	stack[0] = 0
	if in.job.input == nil || len(buffer) == 0 {
		return
	}

	n, err := 0, in.ctx.Err()
	for tries := 0; n == 0 && err == nil; tries++ {
		if n, err = in.job.input.Read(buffer); tries == 100 {
			err = io.ErrNoProgress
		}
	}
	stack[0] = uint64(uint32(n))
	if n == 0 && !errors.Is(err, io.EOF) {
		in.stopped = err
		stack[0] = uint64(^uint32(0))
	}
}

// hostWrite passes bytes of the guest to the job's output: -1 is an error.
func hostWrite(ctx context.Context, m api.Module, stack []uint64) {
	in := bound(ctx)
	data, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		panic(errBadPointer)
	}
	stack[0] = 0
	err := in.ctx.Err()
	if err == nil && in.job.output != nil {
		_, err = in.job.output.Write(data)
	}

	if err != nil {
		in.stopped = err
		stack[0] = uint64(^uint32(0))
	}
}

func hostExit(_ context.Context, _ api.Module, stack []uint64) {
	panic(fmt.Errorf("the engine exited with code %d", uint32(stack[0])))
}
