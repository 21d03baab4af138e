//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/attached"
	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/internal/turns"
	"github.com/rlmhq/rlm/tiers"
)

// pool has the workers of a tier.
type pool struct {
	options Options
	inner   tiers.Tier // describes the sandboxes, and prepares what workers share

	preparing sync.Mutex
	prepared  bool
	shared    *os.File // the parts of tier wasm, nil for none

	mu       sync.Mutex // guards what follows
	workers  map[*worker]struct{}
	starting int
	failures int       // starts and short lives in a row
	notUntil time.Time // the next start
	changed  chan struct{}
	closed   bool
	saved    int // sessions that are only a saved state
	spare    sync.WaitGroup
}

func newPool(inner tiers.Tier, o Options) *pool {
	return &pool{
		options: o, inner: inner, workers: map[*worker]struct{}{}, changed: make(chan struct{}),
	}
}

const (
	// shortLife is the age at which the end of a worker does not delay the next one.
	shortLife = 10 * time.Second
	// firstBackoff delays a start after a failure. Each further one doubles it, up to lastBackoff.
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = 10 * time.Second
	// admitWithin bounds the wait for a place.
	admitWithin = 10 * time.Second
	// keepEmpty is how long a worker without sessions waits for the next one of its tenant.
	keepEmpty = 30 * time.Second
)

var errClosed = errors.New("the workers are closed")

// parts returns what all workers map instead of preparing it. The caller does not close it.
func (p *pool) parts(ctx context.Context) (*os.File, error) {
	p.preparing.Lock()
	defer p.preparing.Unlock()
	if p.prepared {
		return p.shared, nil
	}

	var about attached.Code
	if file, _, err := attached.Find(attached.CodePart, &about); err == nil {
		p.shared, p.prepared = file, true
		return file, nil
	}
	maker, ok := p.inner.(interface {
		Parts(ctx context.Context) ([]attached.New, error)
	})
	if !ok {
		p.prepared = true
		return nil, nil //nolint:nilnil // documented: there are none
	}

	list, err := maker.Parts(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		p.options.Log.Warn("each worker prepares the tier itself, which takes seconds", "error", err)
		p.prepared = true
		return nil, nil //nolint:nilnil // the workers do without
	}

	empty, err := memoryFile()
	if err != nil {
		return nil, err
	}
	defer empty.Close()
	p.shared, err = sealedFile(func(f *os.File) error { return attached.Write(f, empty, list...) })
	p.prepared = err == nil
	return p.shared, err
}

// wake tells those who wait that something has changed. The caller holds mu.
func (p *pool) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// enter finds a place for a sandbox of a tenant, and puts it there.
func (p *pool) enter(ctx context.Context, s *sandbox) (*worker, int64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, admitWithin,
		fmt.Errorf("%w: all workers are full of sessions that run", turns.ErrBusy))
	defer cancel()
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, 0, errClosed
		}
		if w := p.findPlace(s.tenant); w != nil {
			id := w.lastID.Add(1)
			w.tenant, w.isTaken = s.tenant, true
			w.boxes[id] = s
			p.mu.Unlock()
			p.startSpare()
			return w, id, nil
		}
		wait, mayStart := p.mayStart()
		changed := p.changed
		var leave *sandbox
		if !mayStart && wait == 0 {
			leave = p.findIdle(s.tenant)
		}
		p.mu.Unlock()

		switch {
		case mayStart:
			if err := p.startOne(ctx); err != nil {
				return nil, 0, err
			}
			continue
		case leave != nil && leave.evict(context.WithoutCancel(ctx)):
			continue
		}
		if err := sleep(ctx, changed, wait); err != nil {
			return nil, 0, err
		}
	}
}

// sleep waits for a change, or for a time if that is not zero. A moment always passes: a session
// may be idle soon.
func sleep(ctx context.Context, changed <-chan struct{}, wait time.Duration) error {
	if wait == 0 {
		wait = 20 * time.Millisecond
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	return nil
}

// findPlace returns a worker with room for a session of the tenant. The caller holds mu.
func (p *pool) findPlace(tenant string) *worker {
	var free *worker
	for w := range p.workers {
		switch {
		case w.isClosed || len(w.boxes) >= p.options.Sessions:
		case w.isTaken && w.tenant == tenant:
			return w
		case !w.isTaken:
			free = w
		}
	}

	return free
}

// mayStart reports whether a worker may start now, and counts it, or how long to wait. The caller
// holds mu.
func (p *pool) mayStart() (wait time.Duration, ok bool) {
	if len(p.workers)+p.starting >= p.options.Workers {
		return 0, false
	}
	if wait := time.Until(p.notUntil); wait > 0 {
		return wait, false
	}
	p.starting++
	return 0, true
}

// startOne starts the worker that mayStart has counted.
func (p *pool) startOne(ctx context.Context) error {
	w, err := p.startWorker(ctx)
	p.mu.Lock()
	p.starting--
	isLate := p.closed
	switch {
	case err != nil && ctx.Err() == nil:
		p.backOff()
	case err == nil && !isLate:
		p.workers[w] = struct{}{}
	}

	p.wake()
	p.mu.Unlock()
	if err == nil && isLate {
		w.end("the workers are closed")
		<-w.gone
		return errClosed
	}
	return err
}

// backOff delays the next start. The caller holds mu.
func (p *pool) backOff() {
	delay := min(firstBackoff<<min(p.failures, 10), lastBackoff)
	p.failures++
	p.notUntil = time.Now().Add(delay)
}

// startSpare keeps one worker ready for the next tenant, if there may be another one.
func (p *pool) startSpare() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.workers {
		if !w.isTaken {
			return
		}
	}
	if p.closed || p.starting > 0 {
		return
	}

	if _, ok := p.mayStart(); !ok {
		return
	}
	p.spare.Go(func() {
		if err := p.startOne(context.Background()); err != nil && !errors.Is(err, errClosed) {
			p.options.Log.Warn("cannot start a worker ahead", "error", err)
		}
	})
}

// findIdle returns the session that has rested longest and may be evicted: one of the tenant, or
// else one of a worker whose sessions all rest. The caller holds mu.
func (p *pool) findIdle(tenant string) *sandbox {
	var own, other *sandbox
	for w := range p.workers {
		oldest, isIdle := w.oldest()
		switch {
		case oldest == nil || w.isClosed:
		case w.tenant == tenant:
			own = older(own, oldest)
		case isIdle:
			other = older(other, oldest)
		}
	}

	if own != nil {
		return own
	}
	return other
}

// oldest returns the session of the worker that has rested longest, and whether all rest.
func (w *worker) oldest() (oldest *sandbox, isIdle bool) {
	isIdle = true
	for _, s := range w.boxes {
		if !s.rests() {
			isIdle = false
			continue
		}
		oldest = older(oldest, s)
	}

	return oldest, isIdle
}

func older(a, b *sandbox) *sandbox {
	if a == nil || b.lastUse.Load() < a.lastUse.Load() {
		return b
	}
	return a
}

// leave takes a session out of its worker. The worker is not given to another tenant.
func (p *pool) leave(w *worker, id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(w.boxes, id)
	p.wake()
	if len(w.boxes) > 0 || w.isClosed {
		return
	}
	w.emptied = time.Now()
	if len(p.workers)+p.starting >= p.options.Workers {
		p.retire(w)
		return
	}

	emptied := w.emptied
	time.AfterFunc(keepEmpty, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(w.boxes) == 0 && w.emptied.Equal(emptied) {
			p.retire(w)
		}
	})
}

// retire ends a worker without sessions. The caller holds mu.
func (p *pool) retire(w *worker) {
	if !w.isClosed {
		w.isClosed = true
		delete(p.workers, w)
		w.end("it had no sessions")
	}
}

// forget takes note of the end of a worker.
func (p *pool) forget(w *worker) {
	p.mu.Lock()
	wasOurs := !w.isClosed && !p.closed
	_, isListed := p.workers[w]
	delete(p.workers, w)
	w.isClosed = true
	sessions := len(w.boxes)
	w.boxes = map[int64]*sandbox{}
	if wasOurs && isListed {
		if time.Since(w.begun) < shortLife {
			p.backOff()
		} else {
			p.failures = 0
		}
	}

	p.wake()
	p.mu.Unlock()

	if wasOurs && isListed {
		reason, _ := w.why()
		p.options.Log.Warn("a worker has ended", "reason", reason, "sessions", sessions,
			"output", jail.LastLine(w.jail.Output()))
		if p.options.Ended != nil {
			p.options.Ended(Ending{Reason: reason, Sessions: sessions})
		}
	}
}

// close ends all workers.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	list := make([]*worker, 0, len(p.workers))
	for w := range p.workers {
		list = append(list, w)
	}
	p.wake()
	p.mu.Unlock()
	for _, w := range list {
		w.end("the workers are closed")
	}

	for _, w := range list {
		<-w.gone
	}
	p.spare.Wait()

	p.preparing.Lock()
	defer p.preparing.Unlock()
	if p.shared == nil {
		return nil
	}
	file := p.shared
	p.shared, p.prepared = nil, false
	return file.Close()
}

func (p *pool) countSaved(change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saved += change
}

func (p *pool) stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Workers: len(p.workers), Saved: p.saved}
	for w := range p.workers {
		s.Live += len(w.boxes)
	}
	return s
}
