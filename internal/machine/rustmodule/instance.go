package rustmodule

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/rlmhq/rlm/internal/machine/watchdog/watchwazero"
	"github.com/rlmhq/rlm/internal/machine/zones"
)

// slice is the fuel between two checks of the limits: about a millisecond of work.
const slice = 200_000

// ErrMalformed is the error of a malformed answer.
var ErrMalformed = errors.New("the module sent a malformed answer")

// ErrTooDeep is the error of a call that exhausted its stack.
var ErrTooDeep = errors.New("it is nested too deeply")

// FailureError is the error of a failed module, with its own message and that of its runtime.
type FailureError struct{ Message string }

// Error returns the message.
func (f *FailureError) Error() string { return f.Message }

// LimitError is the error of a call that exceeded one of its bounds.
type LimitError struct {
	// Limit is "Timeout", "Fuel", "Memory" or "Unpacked".
	Limit string
}

// Error returns a message that names the limit.
func (e *LimitError) Error() string { return "the limit " + e.Limit + " was exceeded" }

// Memory is the memory of an instance.
type Memory interface {
	experimental.LinearMemory
	// Refused reports whether growth beyond the bound was refused since the last call of Refused.
	Refused() bool
}

// Instance is one instance of a module. It runs one call at a time. After an error, only Close is
// allowed.
type Instance struct {
	owner  *Module
	module api.Module
	memory Memory
	fuel   watchwazero.Fuel
	noise  noise

	// The following fields describe the current call:
	job      Job
	ctx      context.Context
	deadline time.Time
	left     uint64 // fuel after the current slice
	stopped  error  // why the host ended the call
}

// Job describes one call of a module.
type Job struct {
	Operation uint32
	Request   []byte
	Input     io.Reader // for the module's function read; an io.Seeker for its function seek
	Output    io.Writer // for the module's function write
	Timeout   time.Duration
	// Memory bounds the memory of an [Engine]'s instance, in bytes.
	Memory int64
	// Fuel bounds the work; 0 means no bound.
	Fuel uint64
	// MaxAnswer bounds the answer, in bytes.
	MaxAnswer uint64
}

// Instantiate creates an instance over memory, which the instance then owns. [Instance.Prepare]
// must have run over the same bytes before the first call.
func (m *Module) Instantiate(ctx context.Context, memory Memory) (*Instance, error) {
	in := &Instance{owner: m, memory: memory}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(&in.noise).WithStderr(&in.noise).
		WithRandSource(rand.Reader).WithSysWalltime().WithSysNanotime()
	ctx = experimental.WithMemoryAllocator(ctx, allocator{memory})
	var err error
	if in.module, err = m.Runtime.InstantiateModule(ctx, m.Module, config); err != nil {
		memory.Free()
		return nil, fmt.Errorf("cannot start it: %w", err)
	}

	in.fuel = watchwazero.FuelOf(in.module)
	return in, nil
}

// allocator provides wazero with the memory of an instance.
type allocator struct{ memory Memory }

func (a allocator) Allocate(_, _ uint64) experimental.LinearMemory { return a.memory }

// noise keeps the beginning of the module's output, which states the reason for a trap.
type noise struct{ bytes.Buffer }

func (n *noise) Write(b []byte) (int, error) {
	if room := 1024 - n.Len(); room > 0 {
		n.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// Prepare writes the module's data into fresh memory and starts it.
func (in *Instance) Prepare(ctx context.Context, timeout time.Duration) error {
	if !in.module.Memory().Write(in.owner.start, in.owner.data) {
		return errors.New("the memory has no room for the module's data")
	}
	in.begin(ctx, Job{Timeout: timeout})
	code, err := in.ask(in.bind(ctx), "start", 0)
	if err == nil && code != 0 {
		err = errors.New("it cannot start")
	}

	if err != nil {
		return in.explain(err)
	}
	return nil
}

func (in *Instance) begin(ctx context.Context, job Job) {
	in.job, in.ctx, in.stopped = job, ctx, nil
	in.memory.Refused()
	in.noise.Reset()
	in.deadline, in.left = time.Now().Add(job.Timeout), job.Fuel
	if job.Fuel == 0 {
		in.left = 1 << 62
	}

	in.refuel()
}

// refuel grants the next slice.
func (in *Instance) refuel() {
	grant := min(slice, in.left)
	in.left -= grant
	in.fuel.Set(int64(grant))
}

// Call runs one operation and returns a copy of its answer. The error is that of the input, the
// output or ctx, or a [LimitError], [ErrTooDeep], [ErrMalformed] or a [FailureError].
func (in *Instance) Call(ctx context.Context, job Job) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in.begin(ctx, job)
	answer, err := in.exchange(in.bind(ctx))

	switch {
	case err != nil:
		return nil, in.explain(err)
	case in.stopped != nil: // the input or output failed
		return nil, in.stopped
	}
	return answer, nil
}

func (in *Instance) exchange(ctx context.Context) ([]byte, error) {
	at, err := in.ask(ctx, "allocate", uint64(len(in.job.Request)))
	if err != nil {
		return nil, err
	}
	if !in.module.Memory().Write(uint32(at), in.job.Request) {
		return nil, ErrMalformed
	}
	place, err := in.ask(ctx, "call", uint64(in.job.Operation))
	if err != nil {
		return nil, err
	}

	start, length := uint32(place), uint32(place>>32)
	if length == 0 || uint64(length) > in.job.MaxAnswer {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrMalformed, length)
	}
	answer, ok := in.module.Memory().Read(start, length)
	if !ok {
		return nil, ErrMalformed
	}
	return bytes.Clone(answer), nil
}

// ask calls a function with at most one parameter and a result.
func (in *Instance) ask(ctx context.Context, function string, param uint64) (uint64, error) {
	stack := []uint64{param}
	err := watchwazero.Call(ctx, in.module.ExportedFunction(function), in.fuel, stack)
	return stack[0], err
}

// explain converts the error of an aborted call to one for the caller.
func (in *Instance) explain(err error) error {
	message, _, _ := strings.Cut(err.Error(), "\n")

	switch {
	case in.stopped != nil:
		return in.stopped
	case errors.Is(err, ErrMalformed):
		return err
	case in.memory.Refused():
		return &LimitError{"Memory"}
	case strings.Contains(message, "stack overflow"), strings.Contains(message, "out of bounds"):
		return ErrTooDeep
	}
	return &FailureError{message + ": " + strings.TrimSpace(in.noise.String())}
}

// Close frees the instance and its memory.
func (in *Instance) Close() {
	_ = in.module.Close(context.Background()) // cannot fail without files
}

// key is the context key of the instance whose guest calls a host function.
type key struct{}

func (in *Instance) bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, in)
}

func bound(ctx context.Context) *Instance { return ctx.Value(key{}).(*Instance) }

var (
	errStopped    = errors.New("stopped")
	errBadPointer = errors.New("the module passed an address outside its memory")
)

// hostYield runs when a slice of fuel is exhausted or the watchdog demands it, and ends a call that
// has reached its limits.
func hostYield(ctx context.Context, _ api.Module, _ []uint64) {
	in := bound(ctx)
	in.left += uint64(max(0, in.fuel.Left()))
	runtime.Gosched() // Go cannot interrupt a guest

	switch {
	case in.ctx.Err() != nil:
		in.stopped = context.Cause(in.ctx)
	case time.Now().After(in.deadline):
		in.stopped = &LimitError{"Timeout"}
	case in.left == 0:
		in.stopped = &LimitError{"Fuel"}
	default:
		in.refuel()
		return
	}
	panic(errStopped)
}

// hostRead fills a buffer of the guest from the job's input; it returns -1 on error.
func hostRead(ctx context.Context, m api.Module, stack []uint64) {
	in := bound(ctx)
	buffer, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		panic(errBadPointer)
	}
	stack[0] = 0
	if in.job.Input == nil || len(buffer) == 0 {
		return
	}

	n, err := 0, in.ctx.Err()
	for idle := 0; n < len(buffer) && err == nil; idle++ { // a parser restarts long text at each read
		var more int
		if more, err = in.job.Input.Read(buffer[n:]); more > 0 {
			n, idle = n+more, 0
		}
		if idle == 100 && err == nil {
			err = io.ErrNoProgress
		}
	}
	stack[0] = uint64(uint32(n))
	if err != nil && !errors.Is(err, io.EOF) {
		in.stopped = err
		stack[0] = uint64(^uint32(0))
	}
}

// hostSeek sets the position from which the guest continues to read the job's input; it returns -1
// on error.
func hostSeek(ctx context.Context, _ api.Module, stack []uint64) {
	in := bound(ctx)
	position := int64(stack[0])
	stack[0] = 0
	if seeker, can := in.job.Input.(io.Seeker); can && position >= 0 {
		if _, err := seeker.Seek(position, io.SeekStart); err == nil {
			return
		}
	}
	stack[0] = uint64(^uint32(0))
}

// hostWrite writes bytes of the guest to the job's output; it returns -1 on error.
func hostWrite(ctx context.Context, m api.Module, stack []uint64) {
	in := bound(ctx)
	data, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		panic(errBadPointer)
	}
	stack[0] = 0
	err := in.ctx.Err()
	if err == nil && in.job.Output != nil {
		_, err = in.job.Output.Write(data)
	}

	if err != nil {
		in.stopped = err
		stack[0] = uint64(^uint32(0))
	}
}

const (
	noOffset    = math.MinInt32 // there is no such zone
	longestZone = 64            // bytes of a name that are read
)

// hostZone returns the offset of a time zone in seconds, at a number of seconds since 1970 in UTC
// or in local time.
func hostZone(_ context.Context, m api.Module, stack []uint64) {
	name, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		panic(errBadPointer)
	}
	seconds, isLocal := int64(stack[2]), uint32(stack[3]) != 0
	offset, err := zones.Offset(string(name[:min(len(name), longestZone)]), seconds, isLocal)
	if err != nil {
		offset = noOffset
	}
	stack[0] = uint64(uint32(int32(offset)))
}

func hostExit(_ context.Context, _ api.Module, stack []uint64) {
	panic(fmt.Errorf("the module exited with code %d", uint32(stack[0])))
}
