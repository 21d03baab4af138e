// Package fairqueue shares a few places among many tenants. Each tenant waits in a separate line,
// and the lines take turns, so a tenant that requests many places delays only itself. Within a
// line, callers that keep their place briefly (quick callers) go before the others, with
// exceptions, so that the others advance as well. While quick callers keep arriving, one of several
// places is reserved for them, so they need not wait for a slow caller to give up its place. During
// that time, slow callers leave the last of the other places unused half of the time.
package fairqueue

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrFull reports that a tenant's line is full.
var ErrFull = errors.New("the queue is full")

// Queue assigns places. It is safe for concurrent use.
type Queue struct {
	places    int
	longest   int
	waiting   atomic.Int64
	newcomers atomic.Int64 // number of waiting newcomers

	mu       sync.Mutex
	free     int
	slow     int              // places held by slow callers
	quickAt  time.Time        // last arrival of a quick caller
	slowAt   time.Time        // last time that a slow caller received a place
	restsTo  time.Time        // slow callers receive no place until then
	retry    *time.Timer      // ends the time for which a free place is reserved; may be nil
	lines    map[string]*line // lines of waiting tenants
	turns    []*line          // the lines, in the order of their turns
	arrivals signal           // raised when a caller arrives
	fresh    signal           // raised when a caller arrives in Enter
}

// signal holds a channel that is closed at the next event; it is nil until requested.
type signal struct{ next chan struct{} }

func (s *signal) raise() {
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

func (s *signal) ask(hasCome bool) <-chan struct{} {
	switch {
	case hasCome:
		return closed
	case s.next == nil:
		s.next = make(chan struct{})
	}

	return s.next
}

// line holds the waiting callers of one tenant, in order.
type line struct {
	tenant      string
	quick, slow []*caller
	passed      int // quick callers that received a place since the last slow one
}

// mostPassed bounds the number of quick callers of a tenant that go before a waiting slow one.
const mostPassed = 4

// keptFor is the time for which one place is reserved for quick callers after the last one arrived.
// During that time, slow callers may have the last of the other places half of the time: after a
// slow caller has held it, slow callers wait for as long as that caller held it, but at most
// mostRest.
const (
	keptFor  = 50 * time.Millisecond
	mostRest = 20 * time.Millisecond
)

// next removes the next caller from a non-empty line. It returns nil if only slow callers wait and
// must not have a place.
func (l *line) next(admitsSlow bool) *caller {
	from := &l.quick
	switch {
	case !admitsSlow && len(l.quick) == 0:
		return nil
	case !admitsSlow || len(l.slow) == 0:
	case len(l.quick) == 0 || l.passed >= mostPassed:
		from = &l.slow
		l.passed = 0
	default:
		l.passed++
	}

	c := (*from)[0]
	*from = (*from)[1:]

	return c
}

// of returns the list of the line in which a caller waits.
func (l *line) of(c *caller) *[]*caller {
	if c.isSlow {
		return &l.slow
	}
	return &l.quick
}

// caller is waiting for a place.
type caller struct {
	ready      chan struct{}
	isNewcomer bool // the caller has not had a place yet
	isSlow     bool // the caller keeps its place for a long time
}

// New returns a queue for a number of places. At most longest callers of a tenant may wait.
func New(places, longest int) *Queue {
	return &Queue{places: places, free: places, longest: longest, lines: map[string]*line{}}
}

// Enter waits for a place. If it succeeds, Leave must be called to free the place. The error is the
// context's cause or [ErrFull].
func (q *Queue) Enter(ctx context.Context, tenant string) error {
	return q.enter(ctx, tenant, q.longest, caller{isNewcomer: true})
}

// Return is like Enter, for a caller that has had a place before: it never returns [ErrFull]. A
// slow caller keeps its places for a long time and calls LeaveSlow instead of Leave.
func (q *Queue) Return(ctx context.Context, tenant string, isSlow bool) error {
	return q.enter(ctx, tenant, math.MaxInt, caller{isSlow: isSlow})
}

// HasWaiting reports whether any caller is waiting.
func (q *Queue) HasWaiting() bool { return q.waiting.Load() > 0 }

// HasNewcomers reports whether any caller is waiting in Enter.
func (q *Queue) HasNewcomers() bool { return q.newcomers.Load() > 0 }

// Arrival returns a channel that is closed as soon as any caller waits.
func (q *Queue) Arrival() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.arrivals.ask(q.HasWaiting())
}

// Newcomer returns a channel that is closed as soon as any caller waits in Enter.
func (q *Queue) Newcomer() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fresh.ask(q.HasNewcomers())
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (q *Queue) enter(ctx context.Context, tenant string, longest int, as caller) error {
	c, err := q.join(tenant, longest, as)
	if c == nil {
		return err
	}

	select {
	case <-c.ready:
		return nil
	case <-ctx.Done():
		if !q.quit(tenant, c) {
			q.leave(c.isSlow) // the caller received a place at the same time
		}
		return context.Cause(ctx)
	}
}

// join takes a free place, or joins the tenant's line and returns the waiting caller.
func (q *Queue) join(tenant string, longest int, as caller) (*caller, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !as.isSlow {
		q.quickAt = time.Now()
	}
	// If no quick caller waits for a free place, all waiting callers are slow.
	if q.free > 0 && (!as.isSlow || len(q.turns) == 0 && q.admitsSlow()) {
		q.take(as.isSlow)
		return nil, nil //nolint:nilnil // documented: the caller has its place
	}

	l := q.lines[tenant]
	switch {
	case l == nil:
		l = &line{tenant: tenant}
		q.lines[tenant] = l
		q.turns = append(q.turns, l)
	case len(l.quick)+len(l.slow) >= longest:
		return nil, ErrFull
	}
	c := &as
	c.ready = make(chan struct{})
	*l.of(c) = append(*l.of(c), c)
	q.count(c, 1)
	q.arrivals.raise()
	if c.isNewcomer {
		q.fresh.raise()
	}
	q.giveOut() // a reserved place may have become free
	return c, nil
}

// admitsSlow reports whether a slow caller may have a free place.
func (q *Queue) admitsSlow() bool { return q.slowWait() <= 0 }

// slowWait returns the time for which a slow caller must wait for a free place.
func (q *Queue) slowWait() time.Duration {
	kept := keptFor - time.Since(q.quickAt)
	switch {
	case q.places <= 1 || q.slow < q.places-2:
		return 0
	case q.slow < q.places-1:
		return min(kept, time.Until(q.restsTo))
	}
	return kept
}

func (q *Queue) take(isSlow bool) {
	q.free--
	if isSlow {
		q.slow++
		q.slowAt = time.Now()
	}
}

// count changes the number of waiting callers.
func (q *Queue) count(c *caller, n int64) {
	q.waiting.Add(n)
	if c.isNewcomer {
		q.newcomers.Add(n)
	}
}

// quit removes a caller from its line, and reports whether the caller was still in it.
func (q *Queue) quit(tenant string, c *caller) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[tenant]
	if l == nil {
		return false
	}
	all := l.of(c)
	i := slices.Index(*all, c)
	if i < 0 {
		return false
	}

	*all = append((*all)[:i:i], (*all)[i+1:]...)
	q.count(c, -1)
	q.removeEmpty(l)
	return true
}

// removeEmpty removes a line without callers.
func (q *Queue) removeEmpty(l *line) {
	if len(l.quick)+len(l.slow) > 0 {
		return
	}
	delete(q.lines, l.tenant)
	if i := slices.Index(q.turns, l); i >= 0 {
		q.turns = append(q.turns[:i], q.turns[i+1:]...)
	}
}

// Leave passes a place to the next line.
func (q *Queue) Leave() { q.leave(false) }

// LeaveSlow is like Leave, for a slow caller.
func (q *Queue) LeaveSlow() { q.leave(true) }

func (q *Queue) leave(isSlow bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.free++
	if isSlow {
		q.slow--
		q.restsTo = time.Now().Add(min(time.Since(q.slowAt), mostRest))
	}
	q.giveOut()
}

// giveOut assigns free places to waiting callers. If a place is reserved, it tries again later.
func (q *Queue) giveOut() {
	for q.free > 0 && len(q.turns) > 0 {
		if q.giveOne() {
			continue
		}
		if q.retry == nil {
			q.retry = time.AfterFunc(q.slowWait(), q.giveKept)
		} else {
			q.retry.Reset(q.slowWait()) // a returned place may shorten the wait
		}
		return
	}
}

func (q *Queue) giveKept() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.retry = nil
	q.giveOut()
}

// giveOne assigns a place to the first line with an eligible caller. It reports whether there was
// such a line.
func (q *Queue) giveOne() bool {
	admitsSlow := q.admitsSlow()
	for i, l := range q.turns {
		c := l.next(admitsSlow)
		if c == nil {
			continue
		}
		q.turns = append(append(q.turns[:i:i], q.turns[i+1:]...), l)
		q.take(c.isSlow)
		q.count(c, -1)
		q.removeEmpty(l)
		close(c.ready)
		return true
	}
	return false
}
