package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// calls holds the host calls of one snippet. Results of an earlier snippet never reach a later one,
// because begin resets everything.
type calls struct {
	ctx     context.Context //nolint:containedctx // the snippet's context: requests come from its guest
	stop    context.CancelFunc
	snippet int
	made    int
	running sync.WaitGroup
	replay  *replay // nil unless the guest's state is restored by repeating its snippets

	mu      sync.Mutex // guards the fields below
	cancels map[int]context.CancelFunc
	timed   int // number of calls that use the snippet's own time
	done    []callResult
	wake    chan struct{}
	kept    int // bytes of results not yet fetched by the guest; the gate counts them
}

// callResult is the outcome of a started call.
type callResult struct {
	number int
	value  tiers.Value
	err    error
}

func (c *calls) begin(ctx context.Context, snippet int) {
	c.ctx, c.stop = context.WithCancel(ctx)
	c.snippet, c.made, c.replay = snippet, 0, nil
	c.cancels, c.done, c.wake, c.timed = nil, nil, nil, 0
}

// endCalls cancels the calls that are still running and waits for them, because a Host returns soon
// after its context has ended. It drops results that the guest has not fetched.
func (a *Accounts) endCalls() {
	c := &a.calls
	c.stop()
	c.running.Wait()

	c.mu.Lock()
	defer c.mu.Unlock()
	a.gate.Free(c.kept)
	c.kept, c.done = 0, nil
}

// finish passes the result of a started call to its waiter.
func (c *calls) finish(r callResult, isTimed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if isTimed {
		c.timed--
	}
	if cancel := c.cancels[r.number]; cancel != nil {
		cancel()
		delete(c.cancels, r.number)
	}
	c.done = append(c.done, r)

	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// takeResults returns the results since the last call of takeResults.
func (c *calls) takeResults() []callResult {
	c.mu.Lock()
	defer c.mu.Unlock()

	done := c.done
	c.done = nil

	return done
}

// countPending returns the number of started calls that do not use the snippet's own time.
func (c *calls) countPending() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.cancels) - c.timed
}

// Bounds of one call.
const (
	maxName      = 1000 // bytes; a refusal repeats the name
	maxArguments = 1 << 16
)

// admit parses the operands of a call: name, NUL, [args, named]. If it succeeds, the caller must
// free held bytes at the gate when the call is over.
func (a *Accounts) admit(body []byte) (call tiers.Call, held int, err error) {
	if !a.moving.until.IsZero() { // copying a value can run arbitrary code
		return tiers.Call{}, 0, errors.New("no host function can be called while variables move")
	}
	name, operands, found := bytes.Cut(body, []byte{0})
	if !found || len(name) > maxName {
		return tiers.Call{}, 0, errRequest
	}
	if hostcall.CountValues(operands, 2) > maxArguments {
		return tiers.Call{}, 0, fmt.Errorf("a call takes at most %d arguments", maxArguments)
	}

	held = hostcall.Weigh(operands)
	if err := a.gate.Hold(held); err != nil { // before the host decodes anything
		return tiers.Call{}, 0, err
	}
	call, err = a.decodeCall(string(name), operands)
	if err == nil {
		err = a.permit(&call)
	}
	if err != nil {
		a.gate.Free(held)
	}
	return call, held, err
}

func (a *Accounts) decodeCall(name string, operands []byte) (tiers.Call, error) {
	var pair [3]json.RawMessage // the third detects a surplus operand
	if err := json.Unmarshal(operands, &pair); err != nil || pair[1] == nil || pair[2] != nil {
		return tiers.Call{}, errRequest
	}

	call := tiers.Call{Function: name, Snippet: a.ordinal}
	if json.Unmarshal(pair[0], &call.Args) != nil || json.Unmarshal(pair[1], &call.Named) != nil {
		return tiers.Call{}, errRequest
	}
	return call, nil
}

// permit admits a call within the limit if the host offers the function.
func (a *Accounts) permit(call *tiers.Call) error {
	replay := a.calls.replay
	switch {
	case replay == nil:
	case replay.replays():
		return a.count(call) // the replay checks the rest
	case replay.isFull(a.cfg.Limits.Memory):
		a.Refuse(tiers.LimitHostCalls)
		return fmt.Errorf("the host stores the answers to this session's calls, and they take "+
			"more than %s: open a new session", quantity.IBytes(a.cfg.Limits.Memory))
	}

	if err := a.checkOffered(call.Function); err != nil {
		if replay == nil {
			return err
		}
		// A refused call is an effect of the snippet, too. It is counted, so that the replay is
		// bounded.
		if limited := a.count(call); limited != nil {
			return limited
		}
		replay.record(*call, nil, err)
		return err
	}
	return a.count(call)
}

// count numbers a call, or returns an error if the limit is reached.
func (a *Accounts) count(call *tiers.Call) error {
	if a.calls.made >= a.cfg.Limits.HostCalls {
		a.Refuse(tiers.LimitHostCalls)
		return fmt.Errorf(
			"the limit of %d host calls in one snippet is reached", a.cfg.Limits.HostCalls,
		)
	}
	a.calls.made++
	call.Ordinal = a.calls.made

	return nil
}

func (a *Accounts) checkOffered(function string) error {
	if a.cfg.Host != nil && a.offers(function) {
		return nil
	}
	if _, isModelCall := protocol.Lookup(function); isModelCall || a.cfg.Host == nil {
		return protocol.ErrNoModel
	}
	return fmt.Errorf("the host offers no function %q", function)
}

func (a *Accounts) offers(name string) bool {
	for _, f := range a.cfg.Functions {
		if f.Name == name && f.Value == nil {
			return true
		}
	}
	return false
}

// call runs a host function while the guest waits.
func (a *Accounts) call(body []byte) Reply {
	call, held, err := a.admit(body)
	if err != nil {
		return fail(err)
	}
	defer a.gate.Free(held)

	left := a.timeOf(call.Function)
	ctx, cancel := context.WithTimeoutCause(a.calls.ctx, left, errTimeOver)
	defer cancel()
	a.slot.Pause()
	begun := time.Now()
	value, err := a.callAndKeep(ctx, call)
	defer a.release(value)
	if left == anyTime {
		a.meter.hostWait += time.Since(begun)
	}
	a.resumeSlot()

	return valueReply(value, err)
}

// callAndKeep makes the call and counts the bytes of the result until release.
func (a *Accounts) callAndKeep(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	value, err := a.callHost(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := a.gate.Hold(len(value)); err != nil {
		return nil, err
	}

	a.calls.mu.Lock()
	defer a.calls.mu.Unlock()
	a.calls.kept += len(value)
	return value, nil
}

// release stops counting a result of callAndKeep, because the guest has received the value.
func (a *Accounts) release(value tiers.Value) {
	a.calls.mu.Lock()
	defer a.calls.mu.Unlock()
	counted := min(len(value), a.calls.kept) // endCalls has freed the rest
	a.calls.kept -= counted
	a.gate.Free(counted)
}

// callHost makes the call as soon as the gate admits it, or finds the answer in the replay of a
// repeated snippet.
func (a *Accounts) callHost(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	replay := a.calls.replay
	if replay != nil && replay.replays() {
		return replay.answer(call)
	}

	if err := a.gate.Enter(ctx); err != nil {
		return nil, err
	}
	defer a.gate.Leave()

	value, err := hostcall.Await(ctx, slog.Default(), a.cfg.Host, call)
	if err == nil {
		value, err = checkValue(value)
	}
	if replay != nil {
		replay.record(call, value, err)
	}
	return value, err
}

// checkValue refuses an answer that the guest's minimal JSON scanner could not read.
func checkValue(value tiers.Value) (tiers.Value, error) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return tiers.Value("null"), nil
	}
	if !json.Valid(value) {
		return nil, errors.New("the result of the host function is not JSON")
	}
	return value, nil
}

// startCall runs a host function on a new goroutine.
func (a *Accounts) startCall(body []byte) Reply {
	call, held, err := a.admit(body)
	if err != nil {
		return fail(err)
	}

	c := &a.calls
	left := a.timeOf(call.Function)
	ctx, cancel := context.WithTimeoutCause(c.ctx, left, errTimeOver)
	c.mu.Lock()
	if left != anyTime {
		c.timed++
	}
	if c.cancels == nil {
		c.cancels, c.wake = map[int]context.CancelFunc{}, make(chan struct{}, 1)
	}
	c.cancels[call.Ordinal] = cancel
	c.mu.Unlock()

	c.running.Go(func() {
		defer a.gate.Free(held)
		value, err := a.callAndKeep(ctx, call)
		c.finish(callResult{call.Ordinal, value, err}, left != anyTime)
	})
	return okInt(int64(call.Ordinal))
}

func (a *Accounts) cancelCall(body []byte) Reply {
	number, err := strconv.Atoi(string(body))
	if err != nil {
		return fail(errRequest)
	}

	a.calls.mu.Lock()
	defer a.calls.mu.Unlock()
	if cancel := a.calls.cancels[number]; cancel != nil {
		cancel()
	}
	return Reply{ASCII: true}
}

// maxWait bounds the operand of a wait, in milliseconds.
const maxWait = 1e12

// waitForCalls blocks until a started call has ended, the given time is over, or a limit or the
// caller ends the wait.
func (a *Accounts) waitForCalls(body []byte) Reply {
	ms, err := strconv.ParseInt(string(body), 10, 64)
	if err != nil || ms > maxWait {
		return fail(errRequest)
	}

	done := a.calls.takeResults()
	if len(done) == 0 && ms != 0 {
		a.pause(ms)
		done = a.calls.takeResults()
	}
	defer func() {
		for _, r := range done {
			a.release(r.value)
		}
	}()
	return resultsReply(done)
}

// pause waits for a started call, for at most ms milliseconds; -1 means without limit.
func (a *Accounts) pause(ms int64) {
	isPending := a.calls.countPending() > 0
	wait := time.Duration(ms) * time.Millisecond
	if !isPending { // an idle wait uses the snippet's own time
		left := a.meter.wallLeft()
		if ms < 0 || wait > left {
			wait = left
		}
	} else if ms < 0 {
		wait = 1 << 62
	}

	a.slot.Pause()
	defer a.resumeSlot()
	begun := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-a.calls.wake:
	case <-timer.C:
	case <-a.calls.ctx.Done():
	}

	if isPending {
		a.meter.hostWait += time.Since(begun)
	} else {
		a.meter.idle += time.Since(begun)
	}
}

func resultsReply(done []callResult) Reply {
	out := []byte{'['}
	for i, r := range done {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "[%d,%t,", r.number, r.err == nil)
		if r.err != nil {
			text, err := json.Marshal(r.err.Error())
			if err != nil {
				text = []byte(`"error"`) // a string can always be encoded
			}
			out = append(out, text...)
		} else {
			out = append(out, r.value...)
		}
		out = append(out, ']')
	}
	out = append(out, ']')

	return Reply{Data: out, ASCII: isASCII(out)}
}

// maxSleep bounds the operand of a sleep, in microseconds.
const maxSleep = 1e15

func parseSleep(body []byte) (time.Duration, error) {
	us, err := strconv.ParseInt(string(body), 10, 64)
	if err != nil || us < 0 || us > maxSleep {
		return 0, errRequest
	}
	return time.Duration(us) * time.Microsecond, nil
}

func (a *Accounts) sleep(body []byte) Reply {
	wait, err := parseSleep(body)
	if err != nil {
		return fail(err)
	}
	if wait == 0 {
		return Reply{ASCII: true}
	}

	a.slot.Pause()
	defer a.resumeSlot()
	begun := time.Now()
	timer := time.NewTimer(min(wait, a.meter.wallLeft()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.calls.ctx.Done():
	}
	a.meter.idle += time.Since(begun)

	return Reply{ASCII: true}
}
