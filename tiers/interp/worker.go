package interp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// process is what the tier needs of a jail.
type process interface {
	Conn() net.Conn
	Kill() error
	Wait(ctx context.Context) (jail.Exit, error)
	Output() []byte
	OOM() bool
	Usage() jail.Usage
}

// starter starts a worker's process with so much memory.
type starter func(ctx context.Context, memory int64) (process, error)

const (
	// readyIn bounds how long a worker may take to start, endIn how long to die.
	readyIn = 30 * time.Second
	endIn   = 10 * time.Second
	// takenIn bounds how long a worker may take to read a frame.
	takenIn = 10 * time.Second
)

// frame is what a worker sent.
type frame struct {
	kind wire.Kind
	body []byte
}

// worker is the host's end of one jailed process. It has one owner.
type worker struct {
	proc process
	// frames are what it sends; the channel is closed when it is gone, and then
	// failure says why if it broke the protocol.
	frames  chan frame
	failure error

	write sync.Mutex // guards the connection's writes

	gone    chan struct{} // closed by destroy
	destroy func() jail.Exit
}

// launch starts a worker and waits until it is warm.
func launch(ctx context.Context, start starter, memory int64) (*worker, error) {
	proc, err := start(context.WithoutCancel(ctx), memory)
	if err != nil {
		return nil, fmt.Errorf("cannot start a worker: %w", err)
	}
	w := &worker{proc: proc, frames: make(chan frame), gone: make(chan struct{})}
	w.destroy = sync.OnceValue(w.end)
	go w.read()
	timer := time.NewTimer(readyIn)
	defer timer.Stop()
	select {
	case f, ok := <-w.frames:
		if ok && f.kind == wire.KindReady {
			return w, nil
		}
		err = fmt.Errorf("cannot start a worker: it died (%s)", gohost.LastLine(proc.Output()))
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errors.New("cannot start a worker: it is not ready in time")
	}
	w.destroy()
	return nil, err
}

// read hands on the worker's frames until the connection ends.
func (w *worker) read() {
	defer close(w.frames)
	in := bufio.NewReaderSize(w.proc.Conn(), 32<<10)
	for {
		kind, body, err := wire.Read(in, wire.MaxFromWorker)
		if err != nil {
			w.failure = err
			return
		}
		select {
		case w.frames <- frame{kind, body}:
		case <-w.gone:
			return
		}
	}
}

// send sends one frame.
func (w *worker) send(kind wire.Kind, body []byte) error {
	w.write.Lock()
	defer w.write.Unlock()
	conn := w.proc.Conn()
	if err := conn.SetWriteDeadline(time.Now().Add(takenIn)); err != nil {
		return err
	}
	return wire.Write(conn, kind, body)
}

// end kills the process and waits until it and the reader are gone.
func (w *worker) end() jail.Exit {
	close(w.gone)
	exit := jail.Exit{Code: -1, Killed: true}
	killed := w.proc.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), endIn)
	defer cancel()
	if e, err := w.proc.Wait(ctx); err == nil && killed == nil {
		exit = e
	}
	// A second close says that it was closed.
	_ = w.proc.Conn().Close()
	for range w.frames { // until the reader has ended
	}
	return exit
}

// died says how a worker ended that nobody had killed.
func (w *worker) died() jail.Exit {
	ctx, cancel := context.WithTimeout(context.Background(), endIn)
	defer cancel()
	exit, err := w.proc.Wait(ctx)
	if err != nil {
		exit = jail.Exit{Code: -1}
	}
	exit.OOM = exit.OOM || w.proc.OOM()
	return exit
}
