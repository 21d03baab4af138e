package interp

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// pool keeps some workers warm. It hands out each worker once.
type pool struct {
	start  starter
	size   int
	memory int64
	ctx    context.Context // cancelled when the pool is closed
	cancel context.CancelFunc

	mu      sync.Mutex // guards the fields below
	idle    []*process
	filling bool
	closed  bool
	filler  sync.WaitGroup
	endings errgroup.Group // ends workers that no session needs any more
}

func newPool(start starter, size int, memory int64) *pool {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pool{start: start, size: size, memory: memory, ctx: ctx, cancel: cancel}
	p.endings.SetLimit(endingsAtOnce)
	return p
}

// endingsAtOnce bounds the number of workers that are ended concurrently.
const endingsAtOnce = 8

var errTierClosed = errors.New("the interp tier is closed")

// fill starts workers until the pool is full, and waits for them.
func (p *pool) fill(ctx context.Context) error {
	for {
		p.mu.Lock()
		full, closed := len(p.idle) >= p.size, p.closed
		p.mu.Unlock()
		if closed {
			return errTierClosed
		}
		if full {
			return nil
		}

		w, err := launch(ctx, p.start, p.memory)
		if err != nil {
			return err
		}
		p.put(w)
	}
}

// put adds a worker, or ends it if the pool is full.
func (p *pool) put(w *process) {
	p.mu.Lock()
	room := !p.closed && len(p.idle) < p.size
	if room {
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	if !room {
		w.end()
	}
}

// take returns a worker with the given memory limit, a warm one if possible.
func (p *pool) take(ctx context.Context, memory int64) (*process, error) {
	if memory != p.memory {
		return launch(ctx, p.start, memory)
	}
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, errTierClosed
		}
		var w *process
		if n := len(p.idle); n > 0 {
			w, p.idle = p.idle[0], p.idle[1:]
		}

		p.mu.Unlock()
		p.refill()
		if w == nil {
			return launch(ctx, p.start, memory)
		}
		select {
		case <-w.connection.Gone():
			w.end()
		default:
			return w, nil
		}
	}
}

// refill fills the pool in the background, in one goroutine at a time. It stops at the first
// failure, because the next take reports that failure.
func (p *pool) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filling || p.closed || len(p.idle) >= p.size {
		return
	}
	p.filling = true
	p.filler.Go(func() {
		// The session that just began gets the processors first.
		timer := time.NewTimer(settleIn)
		defer timer.Stop()
		select {
		case <-timer.C:
			// The next take reports the failure.
			_ = p.fill(p.ctx)
		case <-p.ctx.Done():
		}

		p.mu.Lock()
		p.filling = false
		p.mu.Unlock()
	})
}

// settleIn delays a refill after a worker was handed out.
const settleIn = 2 * time.Millisecond

// dismiss ends a worker. The kernel takes ten milliseconds to remove a jail, so the caller waits
// only if many others are being ended.
func (p *pool) dismiss(w *process) {
	p.endings.Go(func() error { w.end(); return nil })
}

// close ends the pool and its warm workers. Sessions end the workers that they hold.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	p.cancel()
	p.filler.Wait()

	for _, w := range idle {
		p.dismiss(w)
	}
	_ = p.endings.Wait() // no ending fails
}
