package pykernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/protocol"
	"github.com/rlmhq/rlm/tiers"
)

// calls are the host calls of one snippet. Results of an earlier snippet never
// reach a later one: begin makes everything anew.
type calls struct {
	ctx     context.Context
	stop    context.CancelFunc
	snippet int
	made    int
	running sync.WaitGroup

	mu      sync.Mutex
	cancels map[int]context.CancelFunc
	done    []ended
	wake    chan struct{}
}

// ended is the outcome of a started call.
type ended struct {
	number int
	value  tiers.Value
	err    error
}

func (c *calls) begin(ctx context.Context, snippet int) {
	c.ctx, c.stop = context.WithCancel(ctx)
	c.snippet, c.made = snippet, 0
	c.cancels, c.done, c.wake = nil, nil, nil
}

// end cancels what still runs and waits for it: a Host returns soon once its
// context has ended.
func (c *calls) end() {
	c.stop()
	c.running.Wait()
}

func (c *calls) settled(e ended) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.cancels[e.number]; cancel != nil {
		cancel()
		delete(c.cancels, e.number)
	}
	c.done = append(c.done, e)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *calls) take() []ended {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := c.done
	c.done = nil
	return done
}

func (c *calls) pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.cancels)
}

// admit reads the operands of c and s: name, NUL, [args, named]. Unless there is an
// error, the gate has to free as many bytes as body has when the call has ended.
func (s *Session) admit(body []byte) (tiers.Call, error) {
	call, err := s.decodeCall(body)
	if err == nil {
		err = s.permit(&call)
	}
	if err == nil {
		err = s.gate.Hold(len(body))
	}
	return call, err
}

func (s *Session) decodeCall(body []byte) (tiers.Call, error) {
	name, operands, found := bytes.Cut(body, []byte{0})
	if !found {
		return tiers.Call{}, errRequest
	}
	var pair []json.RawMessage
	call := tiers.Call{Function: string(name), Snippet: s.snippet}
	if err := json.Unmarshal(operands, &pair); err != nil || len(pair) != 2 {
		return tiers.Call{}, errRequest
	}
	if json.Unmarshal(pair[0], &call.Args) != nil || json.Unmarshal(pair[1], &call.Named) != nil {
		return tiers.Call{}, errRequest
	}
	return call, nil
}

// permit admits a call to a function that the host offers, within the limit.
func (s *Session) permit(call *tiers.Call) error {
	if s.cfg.Host == nil || !s.offers(call.Function) {
		if _, known := protocol.Lookup(call.Function); known || s.cfg.Host == nil {
			return protocol.ErrNoModel
		}
		return fmt.Errorf("the host offers no function %q", call.Function)
	}
	if s.calls.made >= s.cfg.Limits.HostCalls {
		s.meter.refused = tiers.LimitHostCalls
		return fmt.Errorf("the limit of %d host calls in one snippet is reached", s.cfg.Limits.HostCalls)
	}
	s.calls.made++
	call.Ordinal = s.calls.made
	return nil
}

func (s *Session) offers(name string) bool {
	for _, f := range s.cfg.Functions {
		if f.Name == name {
			return true
		}
	}
	return false
}

// call runs a host function while the guest waits.
func (s *Session) call(body []byte) Reply {
	call, err := s.admit(body)
	if err != nil {
		return fail(err)
	}
	defer s.gate.Free(len(body))
	begun := time.Now()
	value, err := s.ask(s.calls.ctx, call)
	s.meter.hostWait += time.Since(begun)
	return valueReply(value, err)
}

func valueReply(value tiers.Value, err error) Reply {
	if err != nil {
		return fail(err)
	}
	return Reply{Data: value, ASCII: isASCII(value)}
}

// checkValue refuses what the guest's bare JSON scanner could not read.
func checkValue(value tiers.Value) (tiers.Value, error) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return tiers.Value("null"), nil
	}
	if !json.Valid(value) {
		return nil, errors.New("the host function returned something that is not JSON")
	}
	return value, nil
}

// start runs a host function on a goroutine of its own.
func (s *Session) start(body []byte) Reply {
	call, err := s.admit(body)
	if err != nil {
		return fail(err)
	}
	c, size := &s.calls, len(body)
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	if c.cancels == nil {
		c.cancels, c.wake = map[int]context.CancelFunc{}, make(chan struct{}, 1)
	}
	c.cancels[call.Ordinal] = cancel
	c.mu.Unlock()
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		defer s.gate.Free(size)
		value, err := s.ask(ctx, call)
		c.settled(ended{call.Ordinal, value, err})
	}()
	return okInt(int64(call.Ordinal))
}

// ask makes the call once the gate lets it.
func (s *Session) ask(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	if err := s.gate.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.gate.Leave()
	value, err := s.cfg.Host.Call(ctx, call)
	if err != nil {
		return nil, err
	}
	return checkValue(value)
}

func (s *Session) cancel(body []byte) Reply {
	number, err := strconv.Atoi(string(body))
	if err != nil {
		return fail(errRequest)
	}
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	if cancel := s.calls.cancels[number]; cancel != nil {
		cancel()
	}
	return Reply{ASCII: true}
}

// wait blocks until a started call has ended, the time is over, or a limit or
// the caller ends the wait.
func (s *Session) wait(body []byte) Reply {
	ms, err := strconv.ParseInt(string(body), 10, 64)
	if err != nil || ms > 1e12 {
		return fail(errRequest)
	}
	done := s.calls.take()
	if len(done) == 0 && ms != 0 {
		s.pause(ms)
		done = s.calls.take()
	}
	return endedReply(done)
}

func (s *Session) pause(ms int64) {
	pending := s.calls.pending() > 0
	wait := time.Duration(ms) * time.Millisecond
	if !pending { // an idle wait is the snippet's own time
		left := s.meter.wallLeft()
		if ms < 0 || wait > left {
			wait = left
		}
	} else if ms < 0 {
		wait = 1 << 62
	}
	begun := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.calls.wake:
	case <-timer.C:
	case <-s.calls.ctx.Done():
	}
	if pending {
		s.meter.hostWait += time.Since(begun)
	} else {
		s.meter.idle += time.Since(begun)
	}
}

func endedReply(done []ended) Reply {
	out := []byte{'['}
	for i, e := range done {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "[%d,%t,", e.number, e.err == nil)
		if e.err != nil {
			text, err := json.Marshal(e.err.Error())
			if err != nil {
				text = []byte(`"error"`) // a string always encodes
			}
			out = append(out, text...)
		} else {
			out = append(out, e.value...)
		}
		out = append(out, ']')
	}
	out = append(out, ']')
	return Reply{Data: out, ASCII: isASCII(out)}
}

func (s *Session) sleep(body []byte) Reply {
	us, err := strconv.ParseInt(string(body), 10, 64)
	if err != nil || us < 0 || us > 1e15 {
		return fail(errRequest)
	}
	if us == 0 {
		return Reply{ASCII: true}
	}
	wait := min(time.Duration(us)*time.Microsecond, s.meter.wallLeft())
	begun := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.calls.ctx.Done():
	}
	s.meter.idle += time.Since(begun)
	return Reply{ASCII: true}
}
