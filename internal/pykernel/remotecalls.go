package pykernel

import (
	"context"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// remoteCall is a request whose answer takes its time.
type remoteCall struct {
	number uint32
	cancel context.CancelFunc
	reply  Reply
	sleeps bool
}

// charge adds the time since last to what the snippet waits for.
func (r *Remote) charge(s *Session, last *time.Time) {
	now := time.Now()
	passed := now.Sub(*last)
	*last = now
	calls, sleeps := 0, 0
	for _, call := range r.pending {
		if call.sleeps {
			sleeps++
		} else {
			calls++
		}
	}
	switch {
	case calls > 0:
		s.meter.hostWait += passed
		r.work.waited += passed
		s.meter.hostWait -= r.work.hidden(r.control)
	case sleeps > 0:
		s.meter.idle += passed
	default:
		r.work.worked += passed
	}
}

// Processor is a Control that knows how much processor time its guest has used, 0
// if nobody counts. The answer may be a little old. With one, a snippet that
// computes behind a pending host call is charged for it.
type Processor interface{ Processor() time.Duration }

// work compares the processor time of a guest with the time in which it may have
// computed, from one answer of the Processor to the next.
type work struct {
	known          time.Duration // the last answer, 0 for none
	waited, worked time.Duration // since then: with a host call pending, without
}

// hidden is how much of the waiting since the last answer was work: what the guest
// has computed beyond the time in which it waited for nothing.
func (w *work) hidden(control Control) time.Duration {
	p, ok := control.(Processor)
	if !ok {
		return 0
	}
	now := p.Processor()
	if now == w.known {
		return 0
	}
	hidden := max(0, min(now-w.known-w.worked, w.waited))
	if w.known == 0 {
		hidden = 0 // what it did before is not known
	}
	*w = work{known: now}
	return hidden
}

// maxSleeps bounds the sleeps under way: there is one for each thread.
const maxSleeps = 1024

func (r *Remote) request(s *Session, number uint32, req []byte) (int, bool, error) {
	switch req[0] {
	case 'c':
		r.begin(s, number, req[1:])
		return 0, false, nil
	case 'z':
		r.sleep(s, number, req[1:])
		return 0, false, nil
	case 'x':
		var n uint32
		if _, err := fmt.Sscanf(string(req[1:]), "%d", &n); err == nil && r.pending[n] != nil {
			r.pending[n].cancel()
		}
	}
	reply := Reply{ASCII: true}
	switch req[0] {
	case 'x':
	case 's', 'w': // a native guest has no use for them
		reply = fail(errRequest)
	default:
		reply = s.Handle(req)
	}
	if s.Missing() != "" {
		return -1, true, r.stop()
	}
	if err := r.answer(number, reply); err != nil {
		s.Broke(err)
		return -1, true, r.stop()
	}
	return 0, false, nil
}

// begin starts a host call.
func (r *Remote) begin(s *Session, number uint32, body []byte) {
	var call tiers.Call
	err := errRequest
	if r.pending[number] == nil {
		call, err = s.admit(body)
	}
	if err != nil {
		_ = r.answer(number, fail(err)) // a broken connection shows at the next read
		return
	}
	c, size := &s.calls, len(body)
	ctx, cancel := context.WithCancel(c.ctx)
	p := &remoteCall{number: number, cancel: cancel}
	r.pending[number] = p
	ended := r.ended
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		defer cancel()
		value, err := s.ask(ctx, call)
		s.gate.Free(size)
		p.reply = valueReply(value, err)
		select {
		case ended <- p:
		case <-c.ctx.Done():
		}
	}()
}

func (r *Remote) sleep(s *Session, number uint32, body []byte) {
	var us int64
	if _, err := fmt.Sscanf(string(body), "%d", &us); err != nil || us < 0 || us > 1e15 || r.pending[number] != nil || len(r.pending) >= s.cfg.Limits.HostCallsAtOnce+maxSleeps {
		_ = r.answer(number, fail(errRequest)) // as above
		return
	}
	ctx, cancel := context.WithCancel(s.calls.ctx)
	p := &remoteCall{number: number, cancel: cancel, sleeps: true, reply: Reply{ASCII: true}}
	r.pending[number] = p
	ended, c := r.ended, &s.calls
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		timer := time.NewTimer(time.Duration(us) * time.Microsecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		select {
		case ended <- p:
		case <-c.ctx.Done():
		}
	}()
}

func (r *Remote) abandon() {
	for _, call := range r.pending {
		call.cancel()
	}
}
