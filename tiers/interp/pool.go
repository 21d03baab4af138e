package interp

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pool keeps some workers warm. Each is handed out once.
type pool struct {
	start  starter
	size   int
	memory int64
	ctx    context.Context // ends with the pool
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	idle    []*process
	filling bool
	closed  bool
	filler  sync.WaitGroup
}

func newPool(start starter, size int, memory int64) *pool {
	ctx, cancel := context.WithCancel(context.Background())
	return &pool{start: start, size: size, memory: memory, ctx: ctx, cancel: cancel}
}

var errTierClosed = errors.New("the interp tier is closed")

// fill makes the pool full and waits for it.
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

// put adds a worker, or ends it if there is no room.
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

// take hands out a worker with so much memory: a warm one if there is one.
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

// refill fills the pool in the background. One goroutine does so at a time; it
// gives up at the first failure, which the next take will meet itself.
func (p *pool) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filling || p.closed || len(p.idle) >= p.size {
		return
	}
	p.filling = true
	p.filler.Go(func() {
		// A session that has just begun goes first.
		timer := time.NewTimer(settleIn)
		defer timer.Stop()
		select {
		case <-timer.C:
			// What is wrong will be met and told by the next take.
			_ = p.fill(p.ctx)
		case <-p.ctx.Done():
		}

		p.mu.Lock()
		p.filling = false
		p.mu.Unlock()
	})
}

// settleIn is how long a refill waits after a worker was handed out.
const settleIn = 2 * time.Millisecond

// close ends the pool and the workers in it, not those handed out.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	p.cancel()
	p.filler.Wait()

	for _, w := range idle {
		w.end()
	}
}
