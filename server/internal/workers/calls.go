//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/tiers"
)

// running is a snippet that runs in a worker. It answers the worker's requests for this snippet.
type running struct {
	ctx     context.Context //nolint:containedctx // the context of the call of Run
	stop    context.CancelFunc
	asked   context.Context //nolint:containedctx // the context of the request to the worker
	giveUp  context.CancelCauseFunc
	begun   time.Time
	worker  *worker
	id      int64 // ID of the session in the worker
	box     *sandbox
	snippet int
	job     tiers.Job
	gate    *hostcall.Gate
	parts   *parts
	clock   *clock
	slot    *slots.Slot
	growth  int64 // bytes of memory lent to the snippet while it computes
	written int64 // bytes of output
	failed  error // a panic of the output's writer

	slotting sync.Mutex    // guards pending and the slot
	pending  int           // active calls
	computes chan struct{} // receives an element when the snippet computes again

	mu     sync.Mutex // guards the fields below
	made   map[int]bool
	isOver bool
	calls  sync.WaitGroup
}

// clock calls a function if a snippet does not end in time. The clock stops during host calls, and
// while the snippet waits for its slot.
type clock struct {
	timer *time.Timer
	left  time.Duration
	since time.Time
}

func startClock(limit time.Duration, end func()) *clock {
	c := &clock{left: limit, since: time.Now()}
	c.timer = time.AfterFunc(c.left, end)
	return c
}

func (c *clock) pause() {
	if c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) resume() {
	c.since = time.Now()
	c.timer.Reset(max(c.left, time.Second))
}

// find returns the snippet that is running in a session, or nil.
func (w *worker) find(id int64) *running {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[id]
}

func (w *worker) setRunning(id int64, r *running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r == nil {
		delete(w.running, id)
		return
	}
	w.running[id] = r
}

// countRunning returns the number of running snippets.
func (w *worker) countRunning() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running)
}

// Notice implements jsonrpc.Handler. It receives output, and parts of results.
func (w *worker) Notice(method string, params jsonrpc.Raw) error {
	switch method {
	case methodOutput:
		var p outputParams
		if err := jsonrpc.Decode(params, &p); err != nil {
			return err
		}
		if r := w.find(p.Session); r != nil {
			r.takeOutput(p)
		}
		return nil
	case methodPart:
		var p part
		if err := jsonrpc.Decode(params, &p); err != nil {
			return err
		}
		if r := w.find(p.Session); r != nil {
			r.parts.add(p)
		}
		return nil
	}

	return errors.New("unknown notification")
}

// takeOutput passes on the snippet's output, within the limit.
func (r *running) takeOutput(p outputParams) {
	to := r.job.Stdout
	if p.IsError {
		to = r.job.Stderr
	}
	r.written += int64(len(p.Data))
	if to == nil || r.written > r.box.limits.Output || r.failed != nil {
		return
	}
	defer func() {
		if wrong := recover(); wrong != nil {
			r.failed = fmt.Errorf("the writer for the output panicked: %v\n%s", wrong, debug.Stack())
		}
	}()
	if p.IsEcho {
		session.WriteEcho(to, p.Data)
		return
	}
	_, _ = to.Write(p.Data) // documented: errors of the output do not reach the snippet
}

// Begin implements jsonrpc.Handler. It answers host calls, and requests for files of contexts.
func (w *worker) Begin(ctx context.Context, method string, params jsonrpc.Raw) (jsonrpc.Answer, error) {
	switch method {
	case methodCall:
		var p callParams
		if err := jsonrpc.Decode(params, &p); err != nil {
			return nil, err
		}
		r := w.find(p.Session)
		if r == nil {
			return nil, failed("no snippet of the session runs")
		}
		return r.beginCall(ctx, p)
	case methodText:
		var p textRequest
		if err := jsonrpc.Decode(params, &p); err != nil {
			return nil, err
		}
		s := w.pool.sandboxOf(w, p.Session)
		if s == nil {
			return nil, failed("there is no session %d", p.Session)
		}
		return func() (any, error) {
			text, err := s.lend(ctx, w, p)
			return textResult{text}, err
		}, nil
	}

	return nil, jsonrpc.NewError(jsonrpc.CodeUnknownMethod, nil, "unknown method")
}

func (p *pool) sandboxOf(w *worker, id int64) *sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.boxes[id]
}

// beginCall admits a host call. It counts calls itself, because the worker's count may be wrong.
func (r *running) beginCall(ctx context.Context, p callParams) (jsonrpc.Answer, error) {
	call := tiers.Call{Function: p.Function, Snippet: r.snippet, Ordinal: p.Ordinal}
	held := 0
	for _, arg := range p.Args {
		held += hostcall.Weigh(arg)
		call.Args = append(call.Args, arg)
	}
	for name, arg := range p.Named {
		held += hostcall.Weigh(arg)
		if call.Named == nil {
			call.Named = map[string]tiers.Value{}
		}
		call.Named[name] = arg
	}

	if err := r.admit(p, call); err != nil {
		return nil, failed("%v", err)
	}
	if err := r.gate.Hold(held); err != nil {
		r.calls.Done()
		return nil, failed("%v", err)
	}

	return func() (any, error) {
		defer r.calls.Done()
		defer r.gate.Free(held)
		value, err := r.call(ctx, call)
		if r.ctx.Err() != nil { // the snippet must not mistake this for an error of its call
			r.stopSnippet()
		}
		if err != nil {
			return nil, failed("%v", err)
		}
		return callResult{value}, nil
	}, nil
}

func (r *running) admit(p callParams, call tiers.Call) error {
	for _, arg := range slices.AppendSeq(slices.Clone(call.Args), maps.Values(call.Named)) {
		if !json.Valid(arg) {
			return errors.New("an argument is not JSON")
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.isOver:
		return errors.New("the snippet has ended")
	case !r.box.offers(p.Function):
		return fmt.Errorf("the host offers no function %.100q", p.Function)
	case p.Ordinal < 1 || p.Ordinal > r.box.limits.HostCalls || r.made[p.Ordinal]:
		return errors.New("the call has a wrong number")
	}

	if r.made == nil {
		r.made = map[int]bool{}
	}
	r.made[p.Ordinal] = true
	r.calls.Add(1)
	return nil
}

// call calls the host, with the snippet's context, which contains its run log. The end of the
// request's context cancels the call.
func (r *running) call(request context.Context, call tiers.Call) (tiers.Value, error) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	defer context.AfterFunc(request, func() { cancel(context.Cause(request)) })()
	if err := r.gate.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.gate.Leave()

	r.pause()
	defer r.resume()
	return hostcall.Await(ctx, r.box.pool.options.Log, r.box.cfg.Host, call)
}

// pause reports that the snippet waits for the host.
func (r *running) pause() {
	r.slotting.Lock()
	defer r.slotting.Unlock()
	if r.pending++; r.pending == 1 {
		r.clock.pause()
		r.slot.Pause()
		r.box.pool.relend(r.box.tenant, -r.growth)
	}
}

// resume reports that the snippet continues, and waits for its slot.
func (r *running) resume() {
	r.slotting.Lock()
	defer r.slotting.Unlock()
	if r.pending--; r.pending == 0 {
		r.slot.Resume(r.ctx)
		r.clock.resume()
		r.box.pool.relend(r.box.tenant, r.growth)
		select {
		case r.computes <- struct{}{}:
		default:
		}
	}
}

const (
	// stopWithin is how long a snippet may take to pause when others wait. If a snippet takes
	// longer mostMisses times in a row, it continues without a slot, and the operating system
	// shares the processors.
	stopWithin = 100 * time.Millisecond
	mostMisses = 5
)

// share pauses the snippet for others whenever it has computed for long. It returns when the
// snippet ends.
func (r *running) share() {
	for misses := 0; r.slot != nil && r.ctx.Err() == nil; {
		r.slotting.Lock()
		left, changed := r.slot.Left()
		if r.pending > 0 { // the slot is checked when the snippet computes again
			left, changed = math.MaxInt64, r.computes
		}
		isOver := left <= 0
		switch {
		case !isOver:
		case r.letOthersGo():
			misses = 0
		default:
			misses++
		}
		if misses == mostMisses {
			r.slot.Free()
			r.slotting.Unlock()
			return
		}
		r.slotting.Unlock()

		if !isOver {
			r.await(changed, left)
		}
	}
}

// await waits for a channel, for a duration, or for the end of the snippet.
func (r *running) await(c <-chan struct{}, longest time.Duration) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

// letOthersGo pauses the snippet until it has its next slot. It returns false if the snippet does
// not pause in time. The caller holds slotting.
func (r *running) letOthersGo() bool {
	r.box.pauses++
	p := pauseParams{ofSession{r.id}, r.box.pauses}
	ctx, cancel := context.WithTimeout(r.ctx, stopWithin)
	defer cancel()
	stopped := make(chan bool, 1)
	go func() { stopped <- r.worker.conn.Call(ctx, methodPause, p, nil) == nil }()

	r.clock.pause()
	r.slot.PassOn(r.ctx) // before the snippet has paused, so that others need not wait
	r.clock.resume()
	hasStopped := <-stopped
	_ = r.worker.conn.Notify(methodResume, p) // a dead worker has no snippet
	return hasStopped
}

// stopSnippet makes the worker stop the snippet.
func (r *running) stopSnippet() {
	_ = r.worker.conn.Notify(methodStop, ofSession{r.id}) // a dead worker has stopped
}

// finish cancels the remaining calls, waits for them, and ends the slot.
func (r *running) finish() {
	r.mu.Lock()
	r.isOver = true
	r.mu.Unlock()
	r.stop()
	r.calls.Wait()
	r.clock.timer.Stop()
	r.giveUp(nil)

	r.worker.setRunning(r.id, nil)
	r.slot.End()
}

// maxSaid is the maximum length of an error's message, in characters.
const maxSaid = 10_000

// decodeError converts a worker's error to a tier's error.
func decodeError(known *jsonrpc.Error, tier string) error {
	var d details
	if len(known.Data) > 0 && jsonrpc.Decode(known.Data, &d) != nil {
		d = details{}
	}
	if !slices.Contains(effects, d.Effects) || checkLoss(d.Lost) != nil {
		d.Effects, d.Lost = tiers.EffectsUnknown, nil
	}
	message := texts.Truncate(known.Message, maxSaid)

	switch d.Kind {
	case kindRejected:
		return &tiers.RejectedError{
			Tier: tier, Missing: texts.Truncate(d.Missing, maxName), Reason: texts.Truncate(d.Reason, maxSaid),
			Effects: d.Effects,
		}
	case kindBroken:
		return &tiers.BrokenError{Tier: tier, Effects: d.Effects, Lost: d.Lost, Err: errors.New(message)}
	}
	return errors.New(message)
}
