// Package slots shares the processors of one engine among its running snippets. A snippet computes
// only while it has a slot. It gives up the slot while it waits for the host, or if it has computed
// for a while and others are waiting. So a snippet's limits measure the snippet itself, not the
// load around it.
//
// A context carries a pool of slots: see [Pool.With]. A context without a pool gives every snippet
// a slot immediately.
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

// ErrBusy reports that the engine cannot accept more work now.
var ErrBusy = errors.New("the engine is busy")

const (
	// moment is the time for which a snippet may wait for the host without losing its slot.
	moment = time.Millisecond
	// quantum is the time for which a snippet computes before it lets waiting snippets go first. A
	// snippet that has not begun goes first after only a courtesy, because most snippets are short.
	// A guest of tier wasm checks for such snippets at this interval.
	quantum  = 10 * time.Millisecond
	courtesy = 100 * time.Microsecond
	// farQuantum and farCourtesy are the same for a snippet in another process, which costs more to
	// stop: see Left. Its first slot is longer than a courtesy, so that most snippets end within
	// it, and shorter than a quantum, because many may begin at the same time.
	farQuantum  = 20 * time.Millisecond
	farFirst    = 5 * time.Millisecond
	farCourtesy = 2 * time.Millisecond
	// quick is the total time in slots up to which a snippet takes precedence over snippets with
	// more, and may use the processor reserved for quick snippets: see fairqueue.
	quick = 20 * time.Millisecond
	// patience is the time for which a process keeps its slot while others wait. Nothing can pause
	// a process cheaply, so it afterwards continues without a slot, and the operating system shares
	// the processors.
	patience = 250 * time.Millisecond
)

// Pool holds the slots of one engine. It is safe for concurrent use.
type Pool struct{ queue *fairqueue.Queue }

// New returns slots for a number of simultaneous snippets. A snippet that has not begun is refused
// if longest snippets of its tenant are waiting already.
func New(processors, longest int) *Pool {
	return &Pool{fairqueue.New(processors, longest)}
}

type key struct{}

// With returns a context whose snippets share these slots.
func (p *Pool) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, p)
}

// Slot is one snippet's claim to a processor. It belongs to the goroutine that serves the
// snippet. All methods of a nil Slot do nothing.
type Slot struct {
	gate     *Gate // replaces everything else; may be nil
	queue    *fairqueue.Queue
	tenant   string
	since    time.Time // when the current slot began
	waited   time.Duration
	isFree   bool          // the snippet continues without slots
	isLong   bool          // the snippet has passed its slot on
	isSlow   bool          // the queue treats it as slow
	computed time.Duration // total time in its slots

	mu     sync.Mutex // guards the fields below, which timer changes
	isHeld bool
	pauses int // pauses can be nested
	timer  *time.Timer
}

// Wait waits for a snippet's first slot. The tenant is that of the context: see labels.Tenant. The
// error wraps [ErrBusy] or is the context's cause.
func Wait(ctx context.Context) (*Slot, error) {
	if gate, ok := ctx.Value(gateKey{}).(*Gate); ok {
		t := &Slot{gate: gate, isFree: true}
		t.waited = gate.pass(ctx)
		return t, nil
	}

	pool, ok := ctx.Value(key{}).(*Pool)
	if !ok {
		return nil, nil //nolint:nilnil // a nil Slot works
	}

	t := &Slot{queue: pool.queue, tenant: labels.Tenant(ctx)}
	switch err := t.wait(ctx, time.Now(), t.queue.Enter); {
	case errors.Is(err, fairqueue.ErrFull):
		return nil, fmt.Errorf("%w: too many snippets of this tenant wait for a processor", ErrBusy)
	case err != nil:
		return nil, err
	}
	return t, nil
}

// wait enters the queue. The snippet has been waiting since begun.
func (t *Slot) wait(
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

// Pause records that the snippet waits for something. If that takes longer than a moment, the
// snippet loses its slot.
func (t *Slot) Pause() {
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

func (t *Slot) endMoment() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses > 0 {
		t.leave()
	}
}

// leave gives up the slot. The caller holds the lock.
func (t *Slot) leave() {
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

// Resume ends a Pause. At the end of the outermost one, if the snippet has lost its slot, Resume
// waits for the next slot, and returns the waiting time. If the context ends first, the snippet
// continues without a slot, so that it can notice its end.
func (t *Slot) Resume(ctx context.Context) time.Duration {
	if t == nil || t.isFree {
		t.pauseGate(-1)
		return t.passGate(ctx)
	}
	return t.resume(ctx, time.Now())
}

func (t *Slot) pauseGate(change int) {
	if t != nil && t.gate != nil {
		t.gate.pause(change)
	}
}

func (t *Slot) passGate(ctx context.Context) time.Duration {
	if t == nil || t.gate == nil {
		return 0
	}

	waited := t.gate.pass(ctx)
	t.waited += waited
	return waited
}

func (t *Slot) resume(ctx context.Context, begun time.Time) time.Duration {
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
	_ = t.wait(ctx, begun, func(ctx context.Context, tenant string) error { // documented: it continues
		return t.queue.Return(ctx, tenant, t.isSlow)
	})
	return t.waited - before
}

// IsLost reports whether the snippet has lost its slot.
func (t *Slot) IsLost() bool {
	if t == nil || t.isFree {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.isHeld
}

// Without returns a context whose snippets need no slots, because something else bounds them.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, nil)
}

// Yield lets waiting snippets go first if this one has computed for a while. It returns how
// long the snippet then waited for its next slot.
func (t *Slot) Yield(ctx context.Context) time.Duration {
	switch {
	case t == nil || t.isFree:
		return t.passGate(ctx)
	case !t.shouldYield():
		return 0
	}
	return t.PassOn(ctx)
}

// PassOn lets waiting snippets go first. It returns how long the snippet then waited for its next
// slot.
func (t *Slot) PassOn(ctx context.Context) time.Duration {
	if t == nil || t.isFree {
		return 0
	}
	// Measure from here: the next snippet may compute before this goroutine runs again.
	begun := time.Now()
	t.isLong = true
	t.giveUp()
	return t.resume(ctx, begun)
}

func (t *Slot) shouldYield() bool {
	if !t.queue.HasWaiting() {
		return false
	}
	computed := time.Since(t.since)
	return computed >= quantum || computed >= courtesy && t.queue.HasNewcomers()
}

// Left returns the time for which a snippet in another process may still compute before
// [Slot.PassOn] must pass on its slot. The channel is closed when that time becomes shorter; it is
// nil if that never happens.
func (t *Slot) Left() (left time.Duration, changed <-chan struct{}) {
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

// Free makes the snippet continue without slots, because it cannot be stopped.
func (t *Slot) Free() {
	if t != nil && !t.isFree {
		t.giveUp()
		t.isFree = true
	}
}

// Release is like Yield, for a snippet that cannot be paused. After a longer while, the snippet
// continues without slots.
func (t *Slot) Release() {
	if t == nil || t.isFree || time.Since(t.since) < patience || !t.queue.HasWaiting() {
		return
	}
	t.Free()
}

func (t *Slot) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pauses = 0
	if t.timer != nil {
		t.timer.Stop()
	}
	t.leave()
}

// End ends the snippet's claim to a processor.
func (t *Slot) End() {
	if t != nil && t.gate == nil {
		t.giveUp()
	}
}

// Waited returns how long the snippet has waited for its slots.
func (t *Slot) Waited() time.Duration {
	if t == nil {
		return 0
	}
	return t.waited
}
