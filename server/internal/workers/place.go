//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/slots"
)

// step is the next step of a session that needs a place in a worker.
type step struct {
	worker  *worker // take a place in this worker
	id      int64
	start   bool     // start a worker, which is already counted
	leave   *sandbox // make this session give up its place
	changed <-chan struct{}
	wait    time.Duration // wait for a change, at most this long
	why     string        // the reason for the wait
}

// enter finds a place in a worker for a sandbox of a tenant, and takes it.
func (p *pool) enter(ctx context.Context, s *sandbox) (*worker, int64, error) {
	limited, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	for {
		next, err := p.nextStep(s)
		switch {
		case err != nil:
			return nil, 0, err
		case next.worker != nil:
			p.startSpare()
			return next.worker, next.id, nil
		case next.start:
			if err = p.startOne(limited); errors.Is(err, errClosed) {
				return nil, 0, err
			}
			if limited.Err() == nil {
				continue // after a failure, the next step is to wait
			}
			next.why = "no worker has started in time"
		case next.leave != nil && next.leave.evict(context.WithoutCancel(ctx)):
			continue
		}

		if sleep(limited, next.changed, next.wait) == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		return nil, 0, fmt.Errorf("%w: %s", slots.ErrBusy, next.why)
	}
}

// nextStep returns the next step of a session, and takes a place if one is free.
func (p *pool) nextStep(s *sandbox) (next step, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return next, errClosed
	}
	why, wait := p.obstacle(s.tenant)
	if w := p.findPlace(s, wait > 0); w != nil {
		next.worker, next.id = w, w.lastID.Add(1)
		w.tenant, w.isTaken = s.tenant, true
		if len(w.boxes) == 0 {
			w.company = s.company()
		}
		w.boxes[next.id] = s
		return next, nil
	}

	next.changed, next.wait, next.why = p.changed, wait, why
	switch {
	case p.isFull():
		next.why = fmt.Sprintf("all %d workers are full of sessions that run", p.options.Workers)
		next.wait = 0
		next.leave = p.findIdle(s.tenant)
	case wait == 0:
		p.starting++
		next.start = true
	}
	return next, nil
}

// sleep waits for a change, or for a duration unless it is zero. It also ends after a short time,
// since a session may have become idle.
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

// findPlace returns a worker with room for a session: one of its tenant's or, unless mustWait is
// set, a free one. The caller holds mu.
func (p *pool) findPlace(s *sandbox, mustWait bool) *worker {
	var free *worker
	for w := range p.workers {
		switch {
		case w.isClosed || w.isCondemned || len(w.boxes) >= p.options.Sessions:
		case w.isTaken && w.tenant == s.tenant && (w.company == s.company() || len(w.boxes) == 0):
			return w
		case !w.isTaken && !mustWait:
			free = w
		}
	}

	return free
}

// company is a class of sessions; only sessions of the same class share a worker.
type company int

const (
	quiet   company = iota
	large           // while the kernel gives memory to one, others in its worker may wait
	suspect         // one of their snippets may have ended a worker
)

// largeMemory is the memory, in bytes, above which a session is large.
const largeMemory = maxPages

func (s *sandbox) company() company {
	switch {
	case s.isSuspect.Load():
		return suspect
	case s.memory.Load() > largeMemory:
		return large
	}
	return quiet
}

// separate makes the small sessions leave a worker in which a session has become large, because
// small ones are easier to move. The caller does not hold mu.
func (p *pool) separate(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.company == quiet && !w.isCondemned && !p.closed && len(w.boxes) > 1 {
		w.company = large
		p.moveOut(w, func(s *sandbox) bool { return s.company() == quiet })
	}
}

// moveOut makes matching sessions leave a worker as soon as they rest. The caller holds mu.
func (p *pool) moveOut(w *worker, fits func(*sandbox) bool) {
	for _, s := range w.boxes {
		if !fits(s) {
			continue
		}
		p.helpers.Go(func() {
			s.using.Lock()
			defer s.using.Unlock()
			if s.worker == w {
				s.moveOut(p.life)
			}
		})
	}
}

// countWorkers counts the workers that may accept sessions, including starting ones. The caller
// holds mu.
func (p *pool) countWorkers() int {
	n := p.starting
	for w := range p.workers {
		if !w.isCondemned {
			n++
		}
	}
	return n
}

// isFull reports whether no more workers may start. Condemned workers count only towards the bound
// on all workers. The caller holds mu.
func (p *pool) isFull() bool {
	return p.countWorkers() >= p.options.Workers || len(p.workers)+p.starting >= 2*p.options.Workers
}

// startOne starts a worker that is already counted in starting.
func (p *pool) startOne(ctx context.Context) error {
	w, err := p.startWorker(ctx)
	p.mu.Lock()
	p.starting--
	isLate := p.closed
	if err == nil && w.isClosed { // it has already ended, and would stay in the pool
		_, reason := w.why()
		err = fmt.Errorf("a worker has ended at its start: %s", reason)
	}
	switch {
	case err != nil && ctx.Err() == nil:
		p.starts.add(err.Error())
	case err == nil && !isLate:
		p.starts = backoff{}
		p.workers[w] = struct{}{}
		w.wasReady = true
	}
	p.wake()
	p.mu.Unlock()

	if err != nil {
		return err
	}
	if isLate {
		w.end(causeNone, "the workers are closed")
		<-w.gone
		return errClosed
	}
	p.watching.Do(func() { p.helpers.Go(p.watchMemory) })
	return nil
}

// startSpare keeps one worker ready for the next tenant, if another worker may start.
func (p *pool) startSpare() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.workers {
		if !w.isTaken {
			return
		}
	}
	if p.closed || p.starting > 0 || p.isFull() || p.starts.wait() > 0 {
		return
	}

	p.starting++
	p.helpers.Go(func() {
		if err := p.startOne(p.life); err != nil && !errors.Is(err, errClosed) && p.life.Err() == nil {
			p.options.Log.Warn("cannot start a worker ahead", "error", err)
		}
	})
}

// findIdle returns the longest-resting session that must yield its place to a session of the
// tenant: one of the tenant's own or, if there is none, one in a worker whose sessions all rest.
// The caller holds mu.
func (p *pool) findIdle(tenant string) *sandbox {
	own := p.findResting(func(w *worker) bool { return w.isTaken && w.tenant == tenant })
	if own != nil {
		return own
	}
	return p.findResting(func(w *worker) bool {
		for _, s := range w.boxes {
			if !s.rests() {
				return false
			}
		}
		return true
	})
}

// findResting returns the session in matching workers that has rested longest. The caller holds
// mu.
func (p *pool) findResting(fits func(*worker) bool) (oldest *sandbox) {
	for s := range p.resting(fits) {
		if oldest == nil || s.lastUse.Load() < oldest.lastUse.Load() {
			oldest = s
		}
	}
	return oldest
}

// findLargest returns the resting session in matching workers with the most memory. The caller
// holds mu.
func (p *pool) findLargest(fits func(*worker) bool) (largest *sandbox) {
	for s := range p.resting(fits) {
		if largest == nil || s.memory.Load() > largest.memory.Load() {
			largest = s
		}
	}
	return largest
}

// resting yields the sessions in matching workers that may be evicted. The caller holds mu.
func (p *pool) resting(fits func(*worker) bool) iter.Seq[*sandbox] {
	return func(yield func(*sandbox) bool) {
		for w := range p.workers {
			if w.isClosed || w.isCondemned || !fits(w) {
				continue
			}
			for _, s := range w.boxes {
				if s.rests() && !yield(s) {
					return
				}
			}
		}
	}
}
