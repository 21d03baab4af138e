package router

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rlmhq/rlm/internal/inflight"
	"github.com/rlmhq/rlm/tiers"
)

// journal holds the host calls of one snippet over all its attempts, so that
// none is made twice. An attempt that cannot be rejected writes nothing down:
// nobody would read it.
type journal struct {
	host tiers.Host
	// gate bounds the calls that are kept: they may outlive the tier's own count.
	gate *inflight.Gate

	mu      sync.Mutex
	made    int            // real calls of all attempts
	entries map[int]*entry // by the call's ordinal in the snippet
}

// entry is a call that was made, or is being made.
type entry struct {
	of     fingerprint
	cancel context.CancelFunc
	done   chan struct{} // closed when value and err are set
	value  tiers.Value
	err    error
}

// attempt is one run of the snippet in one tier. Its context carries it to door.
type attempt struct {
	journal *journal
	keep    bool                    // it may be rejected: calls must outlive it
	replay  bool                    // an earlier attempt made calls
	stop    context.CancelCauseFunc // ends the run, set if there are answers to replay

	// Guarded by journal.mu.
	seen    map[int]bool // ordinals called in this attempt
	unnoted int          // calls made that the journal does not hold
	over    bool         // no more calls
	wrong   error        // the mismatch that stopped it
}

// attemptKey finds the attempt in a context.
type attemptKey struct{}

// door is the host that tiers see. It leads to the journal of the run whose
// context a call comes with, because a forked sandbox keeps the host of the one
// that it was copied from.
type door struct{ tiers.Host }

var errNotRunning = errors.New("host call outside of a snippet's run")

// Call answers a call from the journal, or makes it.
func (door) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a.call(ctx, call)
	}
	return nil, errNotRunning
}

// begin starts an attempt, and returns the context to run it with.
func (j *journal) begin(ctx context.Context, keep bool) (context.Context, *attempt) {
	a := &attempt{journal: j, keep: keep, replay: len(j.entries) > 0, stop: func(error) {}}
	if a.replay {
		ctx, a.stop = context.WithCancelCause(ctx)
	}
	return context.WithValue(ctx, attemptKey{}, a), a
}

func (j *journal) calls() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.made
}

func (a *attempt) call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	if a.keep {
		if err := a.journal.enter(ctx, &call); err != nil {
			return nil, a.stopped(err)
		}
	}
	e, began, err := a.entry(ctx, &call)
	if a.keep && !began {
		a.journal.leave(&call)
	}
	if err != nil {
		return nil, err
	}
	if e == nil {
		return a.journal.host.Call(ctx, call)
	}
	select {
	case <-e.done:
		return e.value, e.err
	case <-ctx.Done():
		// The tier has done with the call. Whether it was in vain is not known
		// before the attempt has ended: see settle and end.
		return nil, ctx.Err()
	}
}

// stopped is why no call is taken any more, err if they are.
func (a *attempt) stopped(err error) error {
	a.journal.mu.Lock()
	defer a.journal.mu.Unlock()
	switch {
	case a.wrong != nil:
		return a.wrong
	case a.over:
		return errNotRunning
	}
	return err
}

// entry returns what the journal has for a call, and starts the call if that is
// nothing; then it began. No entry means that the call is to be made without the
// journal.
func (a *attempt) entry(ctx context.Context, call *tiers.Call) (e *entry, began bool, err error) {
	var of fingerprint
	if a.keep || a.replay {
		of = fingerprintOf(call)
	}
	j := a.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if a.wrong != nil {
		return nil, false, a.wrong
	}
	if a.over {
		return nil, false, errNotRunning
	}
	if a.keep || a.replay {
		if a.seen[call.Ordinal] {
			return nil, false, a.mismatch(fmt.Errorf("%w: call %d of the snippet came twice", ErrMismatch, call.Ordinal))
		}
		if a.seen == nil {
			a.seen = map[int]bool{}
		}
		a.seen[call.Ordinal] = true
	}
	if e := j.entries[call.Ordinal]; e != nil {
		if e.of != of {
			return nil, false, a.mismatch(fmt.Errorf("%w: call %d, now of %s, had another function or other arguments in the tier before",
				ErrMismatch, call.Ordinal, oneLine(call.Function)))
		}
		return e, false, nil
	}
	j.made++
	if !a.keep {
		a.unnoted++
		return nil, false, nil
	}
	return j.start(ctx, *call, of), true, nil
}

// mismatch stops the attempt. journal.mu is held.
func (a *attempt) mismatch(err error) error {
	a.wrong = err
	a.stop(err)
	return err
}

// start makes a call on a goroutine of its own, so that it goes on when the
// tier's context ends: if that is because the tier rejects the snippet, the
// answer is paid for and needed. The call has entered the gate and leaves it once
// the host function has returned, however long that takes after its cancellation.
// mu is held.
func (j *journal) start(ctx context.Context, call tiers.Call, of fingerprint) *entry {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &entry{of: of, cancel: cancel, done: make(chan struct{})}
	if j.entries == nil {
		j.entries = map[int]*entry{}
	}
	j.entries[call.Ordinal] = e
	go func() {
		defer cancel()
		defer close(e.done)
		defer j.leave(&call)
		e.value, e.err = j.host.Call(ctx, call)
	}()
	return e
}

// enter waits until a call may be made and kept. A call that its tier gives up
// meanwhile is not made.
func (j *journal) enter(ctx context.Context, call *tiers.Call) error {
	if err := j.gate.Hold(bytesOf(call)); err != nil {
		return err
	}
	err := j.gate.Enter(ctx)
	if err != nil {
		j.gate.Free(bytesOf(call))
	}
	return err
}

func (j *journal) leave(call *tiers.Call) {
	j.gate.Leave()
	j.gate.Free(bytesOf(call))
}

// bytesOf is what a call's arguments take.
func bytesOf(call *tiers.Call) int {
	n := 0
	for _, arg := range call.Args {
		n += len(arg)
	}
	for _, arg := range call.Named {
		n += len(arg)
	}
	return n
}

// end closes an attempt whose snippet has ended for good: calls that still run
// are cancelled and waited for. A Host returns soon once its context has ended.
func (a *attempt) end() {
	for _, e := range a.close() {
		e.cancel()
		<-e.done
	}
}

// settle closes an attempt that was rejected: calls that still run are waited
// for, and cancelled only if ctx ends.
func (a *attempt) settle(ctx context.Context) error {
	for _, e := range a.close() {
		select {
		case <-e.done:
		case <-ctx.Done():
			a.end()
			return context.Cause(ctx)
		}
	}
	return nil
}

// close ends the taking of calls and returns those made so far.
func (a *attempt) close() map[int]*entry {
	a.journal.mu.Lock()
	defer a.journal.mu.Unlock()
	a.over = true
	a.stop(nil)
	return a.journal.entries // after over is set nobody writes
}

// verdict returns how many calls of a closed attempt cannot be replayed, and the
// mismatch that stopped it.
func (a *attempt) verdict() (unnoted int, mismatch error) {
	a.journal.mu.Lock()
	defer a.journal.mu.Unlock()
	return a.unnoted, a.wrong
}
