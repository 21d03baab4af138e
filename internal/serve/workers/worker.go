//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/internal/jsonrpc"
)

// worker is a worker, seen from the parent.
type worker struct {
	pool    *pool
	jail    *jail.Process
	conn    *jsonrpc.Conn
	sender  *sender
	scratch *os.File
	begun   time.Time

	scratching sync.Mutex // held while the scratch file is in use
	lastID     atomic.Int64

	gone   chan struct{} // closed when it has ended and its sessions know
	ending sync.Once
	served chan struct{} // closed when the connection has ended

	mu      sync.Mutex // guards what follows
	reason  string     // why the parent has ended it
	exit    jail.Exit
	running map[int64]*running // snippets

	// Guarded by pool.mu.
	tenant   string
	isTaken  bool // it belongs to a tenant
	boxes    map[int64]*sandbox
	emptied  time.Time // when its last session left
	isClosed bool
}

const (
	// startTimeout bounds the start of a worker, endTimeout its end.
	startTimeout = 60 * time.Second
	endTimeout   = 10 * time.Second
	// ownThreads and openFiles are limits of the process.
	ownThreads = 256
	openFiles  = 4096
	// addressSpace is what a worker reserves: 8 GiB and more for each session, and most of it
	// is never used.
	addressSpace = 1 << 44
	// maxFile bounds a file in memory.
	maxFile = 8 << 30
	// cpuSeconds bounds the processor time of a worker's life: ten years.
	cpuSeconds = 10 * 365 * 24 * 3600
)

// jailFor configures the jail of a worker.
func (o Options) jailFor() jail.Config {
	class := jail.Full
	if o.AllowNested {
		class = jail.Nested
	}
	return jail.Config{
		Worker: jailName, Profile: jail.Engine, MinClass: class, AllowSampled: o.AllowSampled,
		Limits: jail.Limits{
			Memory: o.Memory, AddressSpace: addressSpace, Processes: ownThreads, OpenFiles: openFiles,
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
	j, err := jail.Start(context.WithoutCancel(ctx), p.options.jailFor())
	if err != nil {
		return nil, fmt.Errorf("cannot start a worker: %w", err)
	}

	w := &worker{
		pool: p, jail: j, begun: time.Now(), gone: make(chan struct{}), served: make(chan struct{}),
		boxes: map[int64]*sandbox{}, running: map[int64]*running{},
	}
	if err := w.greet(ctx, parts); err != nil {
		err = fmt.Errorf("cannot start a worker: %w (it wrote %q)", err, jail.LastLine(j.Output()))
		w.end("it did not start")
		<-w.gone
		return nil, err
	}

	go w.watch()
	return w, nil
}

// greet sends the first files, and waits for the first answer.
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
	return w.conn.Call(ctx, methodHello, helloParams{w.pool.inner.Info().Name, w.pool.options.Engine}, nil)
}

// ungreeted ends the serving of a worker that was never served.
func (w *worker) ungreeted(err error) error {
	go w.serve()
	return err
}

// serve reads what the worker sends until its end, and then tells its sessions.
func (w *worker) serve() {
	err := w.conn.Serve(context.Background())
	close(w.served)
	if err != nil {
		w.end(err.Error())
	} else {
		w.end("")
	}
}

// end ends the worker. The reason is empty if it has ended by itself.
func (w *worker) end(reason string) {
	w.ending.Do(func() {
		w.mu.Lock()
		w.reason = reason
		w.mu.Unlock()
		go w.finish()
	})
}

// finish kills the worker, waits for its end, and tells its sessions.
func (w *worker) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if w.endedItself() {
		patient, stop := context.WithTimeout(ctx, lastMoment)
		_, _ = w.jail.Wait(patient) // only to learn how; what does not end is killed
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
		_ = w.sender.conn.Close() // nobody reads it
	}
	if w.scratch != nil {
		_ = w.scratch.Close() // it is in memory
	}
	w.mu.Lock()
	w.exit = exit
	if w.reason == "" {
		w.reason = exit.String()
	}

	w.mu.Unlock()
	w.pool.forget(w)
	close(w.gone)
}

// lastMoment is how long a worker that has closed its connection may take to end.
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

// why says why a worker has ended, and whether for its memory.
func (w *worker) why() (reason string, isMemory bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason, w.exit.OOM
}

// errGone is the error of a request to a worker that has ended.
var errGone = errors.New("the worker has ended")

// call asks the worker. A worker that has ended is errGone.
func (w *worker) call(ctx context.Context, method string, params, result any) error {
	err := w.conn.Call(ctx, method, params, result)
	var known *jsonrpc.Error
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.As(err, &known) && known.Code == jsonrpc.CodeInvalidParams && result != nil && len(known.Data) == 0:
		// Its answer was not what it should be.
		w.end("it broke the protocol: " + known.Message)
	case errors.As(err, &known):
		return decodeError(known, w.pool.inner.Info().Name)
	default:
		w.end("its connection broke: " + err.Error())
	}

	<-w.gone
	return errGone
}

// watch ends the worker when it does not answer.
func (w *worker) watch() {
	every := w.pool.options.StallAfter / 3
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-w.gone:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), w.pool.options.StallAfter)
		err := w.conn.Call(ctx, methodPing, nil, nil)
		if ctx.Err() != nil {
			w.end("it did not answer for " + w.pool.options.StallAfter.String())
		}
		cancel()
		if err != nil {
			return
		}
	}
}

// withScratch lets a request use the scratch file, of which it then reads so many bytes.
func (w *worker) withScratch(most int64, ask func() (int64, error)) ([]byte, error) {
	w.scratching.Lock()
	defer w.scratching.Unlock()
	n, err := ask()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > most {
		w.end("it broke the protocol: a file has the wrong size")
		<-w.gone
		return nil, errGone
	}

	data := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(w.scratch, 0, n), data); err != nil {
		w.end("it broke the protocol: a file is short")
		<-w.gone
		return nil, errGone
	}
	return data, w.scratch.Truncate(0)
}
