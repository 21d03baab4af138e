package docker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// pool keeps containers started in advance. Each can be claimed once.
type pool struct {
	ready chan *process
	stop  chan struct{} // closed when the tier is closed

	mu      sync.Mutex // guards the fields below
	closed  bool
	filling int // the number of containers being started
	filled  sync.WaitGroup
}

func (p *pool) init(size int) {
	p.ready, p.stop = make(chan *process, size), make(chan struct{})
}

// keep puts a container into the pool, and reports whether the pool had room.
func (p *pool) keep(ready *process) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	select {
	case p.ready <- ready:
		return true
	default:
		return false
	}
}

// take returns a live container, or nil. It discards containers that died in the pool.
func (p *pool) take() *process {
	for {
		select {
		case ready := <-p.ready:
			if ready.alive() {
				return ready
			}
			_ = ready.Close() // if this fails, the tier's Close removes the container
		default:
			return nil
		}
	}
}

// refillDelay keeps the start of the next container from slowing the first snippet.
const refillDelay = 100 * time.Millisecond

// refill starts containers in the background until the pool is full.
func (p *pool) refill(start func(context.Context) (*process, error), failed func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && p.filling+len(p.ready) < cap(p.ready) {
		p.filling++
		p.filled.Add(1)
		go p.fill(start, failed)
	}
}

func (p *pool) fill(start func(context.Context) (*process, error), failed func(error)) {
	defer p.filled.Done()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.filling--
	}()

	select {
	case <-time.After(refillDelay):
	case <-p.stop:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ready, err := start(ctx)
	if err != nil {
		failed(err)
		return
	}

	if !p.keep(ready) {
		_ = ready.Close() // the pool was closed or filled in the meantime
	}
}

func (p *pool) close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.stop)
	}
	p.mu.Unlock()
	p.filled.Wait()
	var errs []error
	for {
		select {
		case ready := <-p.ready:
			errs = append(errs, ready.Close())
		default:
			return errors.Join(errs...)
		}
	}
}

// ahead starts a container in advance, for the pool.
func (t *tier) ahead(ctx context.Context) (*process, error) {
	return t.start(ctx, needs{limits: tiers.DefaultLimits(), files: &shown{}})
}

// Warm starts containers in advance.
func (t *tier) Warm(ctx context.Context) error {
	for len(t.pool.ready) < cap(t.pool.ready) {
		p, err := t.ahead(ctx)
		if err != nil {
			return err
		}
		if !t.pool.keep(p) {
			return p.Close()
		}
	}

	return nil
}

// claim returns a container for a session, from the pool or newly started.
func (t *tier) claim(ctx context.Context, n needs) (*process, error) {
	t.sweepOnce(ctx)
	if n.limits.Memory == tiers.DefaultLimits().Memory && len(n.files.mounts) == 0 && !n.out &&
		n.proxy == nil && len(n.labels) == 0 {
		p := t.pool.take()
		t.pool.refill(t.ahead, func(err error) {
			t.options.Log.Warn("cannot start a container ahead", "error", err)
		})
		if p != nil {
			return p, nil
		}
	}

	p, err := t.start(ctx, n)
	if err != nil {
		t.forget() // the daemon or the image may have changed
		return nil, err
	}
	if err := t.removeLeft(ctx); err != nil { // the daemon answers again
		t.options.Log.Warn("cannot remove a container", "error", err)
	}

	return p, nil
}
