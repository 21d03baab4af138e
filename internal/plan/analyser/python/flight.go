package python

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/rlmhq/rlm/router"
)

// flights holds the running analyses. Callers with the same source share one analysis, which ends
// when the last caller has left.
type flights struct {
	mu  sync.Mutex
	now map[[sha256.Size]byte]*flight
}

// flight is one analysis.
type flight struct {
	callers int // guarded by flights.mu
	cancel  context.CancelFunc
	done    chan struct{} // closed when verdict and err are set
	verdict router.Verdict
	err     error
}

// wait returns the verdict on a source, which analyse produces unless another caller has already
// requested it. The error of a caller that leaves is the cause of its context.
func (f *flights) wait(
	ctx context.Context, key [sha256.Size]byte,
	analyse func(context.Context) (router.Verdict, error),
) (router.Verdict, error) {
	one := f.join(ctx, key, analyse)
	select {
	case <-one.done:
		return one.verdict, one.err
	case <-ctx.Done():
		f.leave(key, one)
		return router.Verdict{}, context.Cause(ctx)
	}
}

func (f *flights) join(
	ctx context.Context, key [sha256.Size]byte,
	analyse func(context.Context) (router.Verdict, error),
) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.now[key]; one != nil {
		one.callers++
		return one
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &flight{callers: 1, cancel: cancel, done: make(chan struct{})}
	f.now[key] = one
	go func() {
		defer cancel()
		one.verdict, one.err = analyse(ctx)
		f.forget(key, one)
		close(one.done)
	}()
	return one
}

// leave removes a caller from an analysis, and ends the analysis when the last one leaves.
func (f *flights) leave(key [sha256.Size]byte, one *flight) {
	f.mu.Lock()
	one.callers--
	isLast := one.callers == 0
	if isLast && f.now[key] == one {
		delete(f.now, key) // the next caller starts a new analysis
	}
	f.mu.Unlock()

	if isLast {
		one.cancel()
	}
}

func (f *flights) forget(key [sha256.Size]byte, one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now[key] == one {
		delete(f.now, key)
	}
}
