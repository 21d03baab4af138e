//go:build linux && (amd64 || arm64)

package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// worker is the parent's view of a worker.
type worker struct {
	pool    *pool
	jail    *jail.Process
	conn    *jsonrpc.Conn
	sender  *sender
	scratch *os.File
	begun   time.Time

	scratching sync.Mutex // held while the scratch file is in use
	lastID     atomic.Int64
	memory     atomic.Int64 // the process's memory, as last measured

	resizing sync.Mutex   // held while limit changes
	limit    atomic.Int64 // the process's memory limit

	gone   chan struct{} // closed when the process has ended and its sessions were notified
	ending sync.Once
	served chan struct{} // closed when the connection has ended

	mu      sync.Mutex // guards the fields below
	cause   Cause      // why the process ended
	reason  string     // the cause in words, set by the parent if it ended the worker
	broke   string     // how the connection broke
	exit    jail.Exit
	running map[int64]*running // snippets, by session

	// The following fields are guarded by pool.mu.
	tenant      string
	isTaken     bool // the worker belongs to a tenant
	company     company
	isCondemned bool // the worker receives no more snippets
	boxes       map[int64]*sandbox
	emptied     time.Time // when the last session left
	wasReady    bool
	isClosed    bool
}

const (
	// startTimeout bounds the duration of a worker's start, endTimeout that of its end.
	startTimeout = 60 * time.Second
	endTimeout   = 10 * time.Second
	// ownThreads and openFiles are limits of the process.
	ownThreads = 256
	openFiles  = 4096
	// addressSpace is the address space that a worker reserves: 8 GiB and more for each session,
	// most of it never used.
	addressSpace = 1 << 44
	// maxFile is the maximum size of a file in memory, in bytes.
	maxFile = 8 << 30
	// cpuSeconds is the maximum processor time of a worker: ten years.
	cpuSeconds = 10 * 365 * 24 * 3600
)

// jailFor returns the configuration of a worker's jail, with an initial memory limit in bytes.
func (o Options) jailFor(memory int64) jail.Config {
	class := jail.Full
	if o.AllowNested {
		class = jail.Nested
	}
	return jail.Config{
		Worker: jailName, Profile: jail.Engine, MinClass: class, AllowSampled: o.AllowSampled,
		Limits: jail.Limits{
			Memory: memory, AddressSpace: addressSpace, Processes: ownThreads, OpenFiles: openFiles,
			FileSize: maxFile, CPUSeconds: cpuSeconds,
		},
	}
}

// startWorker starts a worker and waits until it is ready.
func (p *pool) startWorker(ctx context.Context) (*worker, error) {
	parts, err := p.parts(ctx)
	if err != nil {
		return nil, err
	}
	limit := min(baseMemory+needOf(tiers.DefaultLimits().Memory), p.memory.most)
	j, err := jail.Start(context.WithoutCancel(ctx), p.options.jailFor(limit))
	if err != nil {
		return nil, fmt.Errorf("cannot start a worker: %w", err)
	}

	w := &worker{
		pool: p, jail: j, begun: time.Now(), gone: make(chan struct{}), served: make(chan struct{}),
		boxes: map[int64]*sandbox{}, running: map[int64]*running{},
	}
	w.limit.Store(limit)
	if err := w.greet(ctx, parts); err != nil {
		err = fmt.Errorf("cannot start a worker: %w (it wrote %q)", err, jail.LastLine(j.Output()))
		w.end(causeNone, "it did not start")
		<-w.gone
		return nil, err
	}

	go w.watch()
	return w, nil
}

// greet sends the first files and the first request, and waits for the answer.
func (w *worker) greet(ctx context.Context, parts *os.File) (err error) {
	conn := w.jail.Conn()
	w.conn = jsonrpc.New(conn, conn, w, w.pool.options.Log)
	if w.scratch, err = memoryFile(); err != nil {
		return w.ungreeted(err)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return w.ungreeted(err)
	}
	defer theirs.Close()
	w.sender = &sender{conn: ours}

	first := []*os.File{theirs, w.scratch}
	if parts != nil {
		first = append(first, parts)
	}
	stream, ok := conn.(*net.UnixConn)
	if !ok {
		return w.ungreeted(errors.New("its connection cannot carry files"))
	}

	if _, err := (&sender{conn: stream}).send(first...); err != nil {
		return w.ungreeted(err)
	}

	go w.serve()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	hello := helloParams{w.pool.inner.Info().Name, w.pool.options.Engine, garbageOf(w.pool.memory.most)}
	return w.conn.Call(ctx, methodHello, hello, nil)
}

// ungreeted cleans up a worker whose greeting failed.
func (w *worker) ungreeted(err error) error {
	go w.serve()
	return err
}

// serve reads a worker's messages until its end, and then notifies its sessions.
func (w *worker) serve() {
	err := w.conn.Serve(context.Background())
	close(w.served)
	w.lose(err)
}

// lose ends the worker after an error of its connection; nil means the end of the stream. If the
// connection broke, the reason is taken from how the process ended.
func (w *worker) lose(err error) {
	if err != nil && !isBroken(err) {
		w.end(CauseProtocol, "it broke the protocol: "+err.Error())
		return
	}
	w.mu.Lock()
	if err != nil && w.broke == "" {
		w.broke = "its connection broke: " + err.Error()
	}
	w.mu.Unlock()
	w.end(causeNone, "")
}

// isBroken reports whether an error means that the other end of a connection is gone.
func isBroken(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, jsonrpc.ErrClosed) || errors.Is(err, unix.EPIPE) ||
		errors.Is(err, unix.ECONNRESET)
}

// end ends the worker. The reason is empty if the worker ended by itself; the cause is empty if the
// parent no longer needs the worker.
func (w *worker) end(cause Cause, reason string) {
	w.ending.Do(func() {
		w.mu.Lock()
		w.cause, w.reason = cause, reason
		w.mu.Unlock()
		go w.finish()
	})
}

// finish kills the worker, waits for its end, and notifies its sessions.
func (w *worker) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if w.endedItself() {
		patient, stop := context.WithTimeout(ctx, lastMoment)
		_, _ = w.jail.Wait(patient) // if the process does not end by itself, it is killed
		stop()
	}
	isOut := w.jail.OOM()
	err := w.jail.Kill()
	exit, waited := w.jail.Wait(ctx)
	if err = errors.Join(err, waited); err != nil {
		w.pool.options.Log.Error("cannot end a worker", "error", err)
	}

	exit.OOM = exit.OOM || isOut
	<-w.served

	if w.sender != nil {
		_ = w.sender.conn.Close() // the socket has no reader any more
	}
	if w.scratch != nil {
		_ = w.scratch.Close() // the file is in memory
	}
	w.explain(exit)
	w.pool.forget(w)
	close(w.gone)
}

// explain determines why the worker ended. It checks the memory first, because other failures may
// be a consequence of missing memory.
func (w *worker) explain(exit jail.Exit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exit = exit
	switch {
	case exit.OOM && w.cause != CauseMemory:
		w.cause, w.reason = CauseMemory, fmt.Sprintf("out of memory: it may use %s",
			quantity.IBytes(w.limit.Load()))
	case w.reason != "":
	case exit.Killed: // the process had not ended by itself
		w.cause, w.reason = CauseProtocol, cmp.Or(w.broke, "it closed its connection")
	case exit.Signal != 0:
		w.cause, w.reason = CauseSignal, exit.String()
	case exit.Code == exitStuck:
		w.cause, w.reason = CauseStuck, stuckProcess
	default:
		w.cause, w.reason = CauseExit, exit.String()
	}
}

// lastMoment is how long a worker may take to end after it closed its connection.
const lastMoment = time.Second

func (w *worker) endedItself() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason == ""
}

// isGone reports whether the worker has ended.
func (w *worker) isGone() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// why returns why a worker ended.
func (w *worker) why() (Cause, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause, w.reason
}

// errGone is the error of a request to a worker that has ended.
var errGone = errors.New("the worker has ended")

// call sends a request to the worker. If the worker has ended, the error is errGone.
func (w *worker) call(ctx context.Context, method string, params, result any) error {
	return w.check(ctx, w.conn.Call(ctx, method, params, result), result)
}

// callToEnd is like call, but waits until a cancelled request has ended. If that takes too long,
// the worker is ended.
func (w *worker) callToEnd(ctx context.Context, method string, params, result any) error {
	answered := make(chan struct{})
	defer close(answered)
	defer context.AfterFunc(ctx, func() {
		select {
		case <-answered:
		case <-time.After(endTimeout):
			w.end(CauseSilent, "it did not end a request that was cancelled")
		}
	})()
	return w.check(ctx, w.conn.CallToEnd(ctx, method, params, result), result)
}

// check returns the error of a call to the worker.
func (w *worker) check(ctx context.Context, err error, result any) error {
	var known *jsonrpc.Error
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.As(err, &known) && known.Code == jsonrpc.CodeInvalidParams && result != nil && len(known.Data) == 0:
		// The worker's answer was invalid.
		w.end(CauseProtocol, "it broke the protocol: "+known.Message)
	case errors.As(err, &known):
		return decodeError(known, w.pool.inner.Info().Name)
	default:
		w.lose(err)
	}

	<-w.gone
	return errGone
}

// watch ends the worker when it does not answer.
func (w *worker) watch() {
	every := w.pool.options.Grace / silentPeriods
	for {
		if missed := w.ask(every); missed > 0 {
			w.end(CauseSilent, fmt.Sprintf("it did not answer for %s", time.Duration(missed)*every))
			return
		}
		select {
		case <-w.gone:
			return
		case <-time.After(every):
		}
	}
}

const (
	// silentPeriods is the number of periods without an answer after which an idle worker counts as
	// silent. busyPeriods is the number for a worker that computes, because the kernel may delay it
	// while it gives memory to a snippet.
	silentPeriods = 3
	busyPeriods   = 10
)

// ask waits for an answer from the worker, and returns the number of periods without an answer, or
// 0 if the worker answered. A period in which this process itself was late does not count, because
// the machine was busy or asleep.
func (w *worker) ask(period time.Duration) (missed int) {
	answered := make(chan struct{})
	go func() {
		_ = w.conn.Call(context.Background(), methodPing, nil, nil) // fails if the worker is gone
		close(answered)
	}()
	before := w.jail.Usage().CPUNanos
	for missed < silentPeriods || missed < busyPeriods && w.jail.Usage().CPUNanos > before {
		begun := time.Now()
		select {
		case <-w.gone:
			return 0
		case <-answered:
			return 0
		case <-time.After(period):
			if time.Since(begun) < 2*period {
				missed++
			}
		}
	}
	return missed
}

// withScratch calls ask, whose request may write to the scratch file, and then reads as many bytes
// as ask returns, up to most. The request must use callToEnd; otherwise its late writes could be
// mistaken for those of the next request.
func (w *worker) withScratch(most int64, ask func() (int64, error)) ([]byte, error) {
	w.scratching.Lock()
	defer w.scratching.Unlock()
	n, err := ask()
	if err != nil {
		_ = w.scratch.Truncate(0) // frees memory; the next request reports its size
		return nil, err
	}
	if n < 0 || n > most {
		w.end(CauseProtocol, "it broke the protocol: a file has the wrong size")
		<-w.gone
		return nil, errGone
	}

	data := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(w.scratch, 0, n), data); err != nil {
		w.end(CauseProtocol, "it broke the protocol: a file is short")
		<-w.gone
		return nil, errGone
	}
	return data, w.scratch.Truncate(0)
}
