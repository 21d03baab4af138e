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
		s.meter.hostWait += passed - min(passed, r.computed())
	case sleeps > 0:
		s.meter.idle += passed
	}
}

// Processor is a Control that knows how much processor time its guest has used, 0
// if nobody counts. With one, a snippet that computes behind a pending host call is
// charged for it.
type Processor interface{ Processor() time.Duration }

// computed is the processor time since it was last asked for.
func (r *Remote) computed() time.Duration {
	p, ok := r.control.(Processor)
	if !ok {
		return 0
	}
	was := r.processor
	r.processor = p.Processor()
	if was == 0 {
		return 0
	}
	return max(0, r.processor-was)
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
