package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/tiers"
)

// replay holds the host calls of one snippet from all attempts, so that no call is made twice. An
// attempt that cannot be rejected records nothing, since nothing would be replayed.
type replay struct {
	host tiers.Host
	log  *slog.Logger
	// gate bounds the recorded calls, which may outlive the tier's own count.
	gate *hostcall.Gate

	mu      sync.Mutex
	made    int            // real calls in all attempts
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

// attempt is one run of the snippet in one tier. The context of the run carries it to door.
type attempt struct {
	replay  *replay
	keep    bool                    // it may be rejected, so calls must outlive it
	isAgain bool                    // an earlier attempt made calls
	stop    context.CancelCauseFunc // ends the run; set if there are answers to replay

	// The fields below are guarded by replay.mu.
	seen    map[int]bool // ordinals called in this attempt
	unnoted int          // calls made but not recorded
	over    bool         // no more calls are accepted
	wrong   error        // the mismatch that stopped the attempt
}

// attemptKey is the context key of the attempt.
type attemptKey struct{}

// door is the host that tiers receive. It passes calls to the replay in the context of the call,
// because a forked sandbox keeps the host of its original.
type door struct{ tiers.Host }

var errNotRunning = errors.New("host call outside of a snippet's run")

// Call answers a call from the replay, or makes it.
func (door) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a.call(ctx, call)
	}
	return nil, errNotRunning
}

// beginAttempt starts an attempt, and returns the context to run it with.
func (j *replay) beginAttempt(ctx context.Context, keep bool) (context.Context, *attempt) {
	a := &attempt{replay: j, keep: keep, isAgain: len(j.entries) > 0, stop: func(error) {}}
	if a.isAgain {
		ctx, a.stop = context.WithCancelCause(ctx)
	}
	return context.WithValue(ctx, attemptKey{}, a), a
}

// countCalls returns the number of host calls made in all attempts.
func (j *replay) countCalls() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.made
}

func (a *attempt) call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	if a.keep {
		if err := a.replay.enterGate(ctx, &call); err != nil {
			return nil, a.stopReason(err)
		}
	}

	e, began, err := a.findEntry(ctx, &call)
	if a.keep && !began {
		a.replay.leaveGate(&call)
	}
	if err != nil {
		return nil, err
	}
	if e == nil {
		return hostcall.Call(ctx, a.replay.log, a.replay.host, call)
	}

	select {
	case <-e.done:
		return e.value, e.err
	case <-ctx.Done():
		// The tier gave up the call. Whether its answer is still needed is decided when the attempt
		// has ended: see awaitCalls and cancelCalls.
		return nil, ctx.Err()
	}
}

// stopReason returns the reason why no more calls are accepted, or err if they are.
func (a *attempt) stopReason(err error) error {
	a.replay.mu.Lock()
	defer a.replay.mu.Unlock()

	switch {
	case a.wrong != nil:
		return a.wrong
	case a.over:
		return errNotRunning
	}
	return err
}

// findEntry returns the recorded entry for a call. If there is none, it starts the call and sets
// began. A nil entry means that the call must be made without the replay.
func (a *attempt) findEntry(
	ctx context.Context, call *tiers.Call,
) (e *entry, began bool, err error) {
	var of fingerprint
	if a.keep || a.isAgain {
		of = fingerprintOf(call)
	}
	j := a.replay
	j.mu.Lock()
	defer j.mu.Unlock()

	if a.wrong != nil {
		return nil, false, a.wrong
	}
	if a.over {
		return nil, false, errNotRunning
	}

	if a.keep || a.isAgain {
		if a.seen[call.Ordinal] {
			err := fmt.Errorf("%w: call %d of the snippet was made twice", errMismatch, call.Ordinal)
			return nil, false, a.stopMismatched(err)
		}

		if a.seen == nil {
			a.seen = map[int]bool{}
		}
		a.seen[call.Ordinal] = true
	}

	if e := j.entries[call.Ordinal]; e != nil {
		if e.of != of {
			err := fmt.Errorf("%w: call %d, now to %s, had a different function or different "+
				"arguments in the previous tier", errMismatch, call.Ordinal, texts.OneLine(call.Function))
			return nil, false, a.stopMismatched(err)
		}
		return e, false, nil
	}

	j.made++
	if !a.keep {
		a.unnoted++
		return nil, false, nil
	}
	return j.startCall(ctx, *call, of), true, nil
}

// stopMismatched stops the attempt. The caller holds replay.mu.
func (a *attempt) stopMismatched(err error) error {
	a.wrong = err
	a.stop(err)
	return err
}

// startCall makes a call on a separate goroutine, so that it continues when the tier's context
// ends. If the context ends because the tier rejects the snippet, the answer is paid for and still
// needed. The call has entered the gate and leaves it once the host function has returned, however
// long that takes after its cancellation. The caller holds mu.
func (j *replay) startCall(ctx context.Context, call tiers.Call, of fingerprint) *entry {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &entry{of: of, cancel: cancel, done: make(chan struct{})}
	if j.entries == nil {
		j.entries = map[int]*entry{}
	}
	j.entries[call.Ordinal] = e
	hostcall.Go(ctx, j.log, j.host, call, func(value tiers.Value, err error) {
		e.value, e.err = value, err
		j.leaveGate(&call)
		close(e.done)
		cancel()
	})
	return e
}

// enterGate waits until a call may be made and recorded. A call that its tier gives up in the
// meantime is not made.
func (j *replay) enterGate(ctx context.Context, call *tiers.Call) error {
	if err := j.gate.Hold(bytesOf(call)); err != nil {
		return err
	}
	err := j.gate.Enter(ctx)
	if err != nil {
		j.gate.Free(bytesOf(call))
	}
	return err
}

func (j *replay) leaveGate(call *tiers.Call) {
	j.gate.Leave()
	j.gate.Free(bytesOf(call))
}

// bytesOf returns the size of a call's arguments, in bytes.
func bytesOf(call *tiers.Call) int {
	n := 0
	for _, arg := range call.Args {
		n += hostcall.Weigh(arg)
	}
	for _, arg := range call.Named {
		n += hostcall.Weigh(arg)
	}
	return n
}

// cancelCalls closes an attempt whose snippet has ended for good: it cancels the calls that are
// still running and waits for them. A Host returns soon after its context has ended.
func (a *attempt) cancelCalls() {
	for _, e := range a.closeCalls() {
		e.cancel()
		<-e.done
	}
}

// awaitCalls closes a rejected attempt: it waits for the calls that are still running, and cancels
// them only if ctx ends.
func (a *attempt) awaitCalls(ctx context.Context) error {
	for _, e := range a.closeCalls() {
		select {
		case <-e.done:
		case <-ctx.Done():
			a.cancelCalls()
			return context.Cause(ctx)
		}
	}
	return nil
}

// closeCalls stops accepting calls and returns the calls made so far.
func (a *attempt) closeCalls() map[int]*entry {
	a.replay.mu.Lock()
	defer a.replay.mu.Unlock()
	a.over = true
	a.stop(nil)
	return a.replay.entries // nothing is added once over is set
}

// verdict returns the number of calls of a closed attempt that cannot be replayed, and the mismatch
// that stopped the attempt.
func (a *attempt) verdict() (unnoted int, mismatch error) {
	a.replay.mu.Lock()
	defer a.replay.mu.Unlock()
	return a.unnoted, a.wrong
}
