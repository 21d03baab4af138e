// Package slots shares the processors of one engine among its running snippets. A snippet
// computes only in its turn. It gives the turn up while it waits for the host, and when
// others wait and it has computed for a while. So a snippet's limits measure the snippet,
// not the crowd around it.
//
// Turns travel in a context: see [Turns.With]. A context without them gives every snippet a
// turn at once.
package slots

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/fairqueue"
	"github.com/rlmhq/rlm/internal/snippet/labels"
)

// ErrBusy says that the engine cannot take on more work now.
var ErrBusy = errors.New("the engine is busy")

const (
	// moment is how long a snippet may wait for the host without losing its turn.
	moment = time.Millisecond
	// quantum is how long a snippet computes before it lets waiting snippets go first. It lets
	// a snippet that has not begun go earlier, after a courtesy: most snippets are short. A guest
	// of tier wasm looks for it that often.
	quantum  = 10 * time.Millisecond
	courtesy = 100 * time.Microsecond
	// farQuantum and farCourtesy are those of a snippet of another process, which costs more to
	// stop: see Left. Its first turn is longer than a courtesy, so that most snippets end in it, and
	// shorter than a quantum, because many may begin at once.
	farQuantum  = 20 * time.Millisecond
	farFirst    = 5 * time.Millisecond
	farCourtesy = 2 * time.Millisecond
	// quick is the time in its turns up to which a snippet goes before those with more, for which
	// a processor of several is kept while others come, see fairqueue.
	quick = 20 * time.Millisecond
	// patience is how long a process keeps its turn while others wait. Nothing can pause a
	// process cheaply, so it then goes on without a turn, and the operating system shares
	// the processors.
	patience = 250 * time.Millisecond
)

// Turns are the processors of one engine. They are safe for concurrent use.
type Turns struct{ queue *fairqueue.Queue }

// New returns turns for so many snippets at once. A snippet that has not begun is refused if
// longest snippets of its tenant wait already.
func New(processors, longest int) *Turns {
	return &Turns{fairqueue.New(processors, longest)}
}

type key struct{}

// With returns a context whose snippets share these turns.
func (t *Turns) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, t)
}

// Turn is one snippet's claim to a processor. It belongs to the goroutine that serves the
// snippet. All methods of a nil Turn do nothing.
type Turn struct {
	gate     *Gate // in place of all else, nil for none
	queue    *fairqueue.Queue
	tenant   string
	since    time.Time // when the current turn began
	waited   time.Duration
	isFree   bool          // it goes on without turns
	isLong   bool          // it has passed its turn on
	isSlow   bool          // the queue knows it as a slow one
	computed time.Duration // in its turns so far

	mu     sync.Mutex // guards what follows, which timer changes
	isHeld bool
	pauses int // one may be within another
	timer  *time.Timer
}

// Wait waits for a snippet's first turn. The tenant is that of the context's labels. The
// error wraps [ErrBusy] or is the context's cause.
func Wait(ctx context.Context) (*Turn, error) {
	if gate, ok := ctx.Value(gateKey{}).(*Gate); ok {
		t := &Turn{gate: gate, isFree: true}
		t.waited = gate.pass(ctx)
		return t, nil
	}

	turns, ok := ctx.Value(key{}).(*Turns)
	if !ok {
		return nil, nil //nolint:nilnil // a nil Turn works
	}

	t := &Turn{queue: turns.queue, tenant: labels.Tenant(ctx)}
	switch err := t.wait(ctx, time.Now(), t.queue.Enter); {
	case errors.Is(err, fairqueue.ErrFull):
		return nil, fmt.Errorf("%w: too many snippets of this tenant wait for a processor", ErrBusy)
	case err != nil:
		return nil, err
	}
	return t, nil
}

// wait enters the queue. The snippet has been waiting since begun.
func (t *Turn) wait(
	ctx context.Context, begun time.Time, enter func(ctx context.Context, tenant string) error,
) error {
	err := enter(ctx, t.tenant)
	t.since = time.Now()
	t.waited += t.since.Sub(begun)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.isHeld = err == nil
	return err
}

// Pause says that the snippet waits for something. If that takes longer than a moment, it
// loses its turn.
func (t *Turn) Pause() {
	if t == nil || t.isFree {
		t.pauseGate(1)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pauses++
	if t.timer == nil {
		t.timer = time.AfterFunc(moment, t.endMoment)
	} else {
		t.timer.Reset(moment)
	}
}

func (t *Turn) endMoment() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses > 0 {
		t.leave()
	}
}

// leave gives the turn up. The caller holds the lock.
func (t *Turn) leave() {
	if t.isHeld {
		t.isHeld = false
		t.computed += time.Since(t.since)
		if t.isSlow {
			t.queue.LeaveSlow()
		} else {
			t.queue.Leave()
		}
	}
}

// Resume ends a Pause. At the end of the outermost one it waits for the next turn, if the
// snippet has lost its turn, and returns how long. If the context ends first, the snippet goes
// on without a turn: it has to notice its end.
func (t *Turn) Resume(ctx context.Context) time.Duration {
	if t == nil || t.isFree {
		t.pauseGate(-1)
		return t.passGate(ctx)
	}
	return t.resume(ctx, time.Now())
}

func (t *Turn) pauseGate(change int) {
	if t != nil && t.gate != nil {
		t.gate.pause(change)
	}
}

func (t *Turn) passGate(ctx context.Context) time.Duration {
	if t == nil || t.gate == nil {
		return 0
	}

	waited := t.gate.pass(ctx)
	t.waited += waited
	return waited
}

func (t *Turn) resume(ctx context.Context, begun time.Time) time.Duration {
	t.mu.Lock()
	t.pauses = max(0, t.pauses-1)
	isReady := t.isHeld || t.pauses > 0
	if t.timer != nil && t.pauses == 0 {
		t.timer.Stop()
	}
	t.mu.Unlock()

	if isReady {
		return 0
	}
	before := t.waited
	t.isSlow = t.computed >= quick
	_ = t.wait(ctx, begun, func(ctx context.Context, tenant string) error { // documented: it goes on
		return t.queue.Return(ctx, tenant, t.isSlow)
	})
	return t.waited - before
}

// IsLost reports whether the snippet has lost its turn.
func (t *Turn) IsLost() bool {
	if t == nil || t.isFree {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.isHeld
}

// Without returns a context whose snippets take no turns: something else bounds them.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, nil)
}

// Yield lets waiting snippets go first if this one has computed for a while. It returns how
// long the snippet then waited for its next turn.
func (t *Turn) Yield(ctx context.Context) time.Duration {
	switch {
	case t == nil || t.isFree:
		return t.passGate(ctx)
	case !t.shouldYield():
		return 0
	}
	return t.PassOn(ctx)
}

// PassOn lets waiting snippets go first. It returns how long the snippet then waited for its next
// turn.
func (t *Turn) PassOn(ctx context.Context) time.Duration {
	if t == nil || t.isFree {
		return 0
	}
	// From here on: the next snippet may compute before this goroutine runs again.
	begun := time.Now()
	t.isLong = true
	t.giveUp()
	return t.resume(ctx, begun)
}

func (t *Turn) shouldYield() bool {
	if !t.queue.HasWaiting() {
		return false
	}
	computed := time.Since(t.since)
	return computed >= quantum || computed >= courtesy && t.queue.HasNewcomers()
}

// Left returns how long a snippet of another process may still compute before its turn is passed
// on, by [Turn.PassOn], and a channel that is closed when that time becomes less, nil for never.
func (t *Turn) Left() (left time.Duration, changed <-chan struct{}) {
	switch {
	case t == nil || t.isFree:
		return math.MaxInt64, nil
	case !t.queue.HasWaiting():
		return math.MaxInt64, t.queue.Arrival()
	case !t.queue.HasNewcomers():
		return farQuantum - time.Since(t.since), t.queue.Newcomer()
	case !t.isLong:
		return farFirst - time.Since(t.since), nil
	}
	return farCourtesy - time.Since(t.since), nil
}

// Free lets the snippet go on without turns: it cannot be stopped.
func (t *Turn) Free() {
	if t != nil && !t.isFree {
		t.giveUp()
		t.isFree = true
	}
}

// Release is Yield for a snippet that cannot be paused. After a longer while, the snippet
// goes on without turns.
func (t *Turn) Release() {
	if t == nil || t.isFree || time.Since(t.since) < patience || !t.queue.HasWaiting() {
		return
	}
	t.Free()
}

func (t *Turn) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pauses = 0
	if t.timer != nil {
		t.timer.Stop()
	}
	t.leave()
}

// End ends the claim.
func (t *Turn) End() {
	if t != nil && t.gate == nil {
		t.giveUp()
	}
}

// Waited is how long the snippet has waited for its turns.
func (t *Turn) Waited() time.Duration {
	if t == nil {
		return 0
	}
	return t.waited
}
