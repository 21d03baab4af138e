package session

import (
	"context"
	"strconv"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// pendingCall is a request of a Connection's guest that is not answered immediately.
type pendingCall struct {
	number  uint32
	cancel  context.CancelFunc
	reply   Reply
	value   tiers.Value // the content of the reply, until it is sent
	isSleep bool
	isTimed bool // the call's time is the snippet's own
}

// charge charges the time since last to the snippet's accounts.
func (c *Connection) charge(a *Accounts, last *time.Time) {
	now := time.Now()
	passed := now.Sub(*last)
	*last = now

	calls, sleeps := 0, 0
	for _, call := range c.pending {
		switch {
		case call.isSleep:
			sleeps++
		case !call.isTimed:
			calls++
		}
	}
	a.meter.charge(passed, calls, sleeps)
}

// handleRequest answers a request, or starts answering it. An error means that the guest was
// stopped.
func (c *Connection) handleRequest(a *Accounts, request wire.Request) error {
	number, body := request.Number, request.Body
	reply := Reply{ASCII: true}
	switch body[0] {
	case 'c':
		c.beginCall(a, number, body[1:])
		return nil
	case 'z':
		c.beginSleep(a, number, body[1:])
		return nil
	case 'x':
		c.cancelCall(body[1:])
	case 's', 'w': // threads of the guest wait by themselves
		reply = fail(errRequest)
	default:
		reply = a.Handle(body)
	}

	if a.Missing() != "" {
		return c.stop()
	}
	if err := c.answer(number, reply); err != nil {
		a.Fail(err)
		return c.stop()
	}
	return nil
}

func (c *Connection) cancelCall(body []byte) {
	number, err := strconv.ParseUint(string(body), 10, 32)
	if err != nil {
		return
	}
	if call := c.pending[uint32(number)]; call != nil {
		call.cancel()
	}
}

// beginCall starts a host call.
func (c *Connection) beginCall(a *Accounts, number uint32, body []byte) {
	var call tiers.Call
	held, err := 0, errRequest
	if c.pending[number] == nil && number != wire.NoAnswer {
		call, held, err = a.admit(body)
	}
	if err != nil {
		c.refuse(number, err)
		return
	}

	left := a.timeOf(call.Function)
	p := &pendingCall{number: number, isTimed: left != anyTime}
	c.begin(a, p, func(ctx context.Context, p *pendingCall) {
		ctx, cancel := context.WithTimeoutCause(ctx, left, errTimeOver)
		defer cancel()
		value, err := a.callAndKeep(ctx, call)
		a.gate.Free(held)
		p.value, p.reply = value, valueReply(value, err)
	})
}

// maxSleeps bounds the concurrent sleeps, one per thread.
const maxSleeps = 1024

func (c *Connection) beginSleep(a *Accounts, number uint32, body []byte) {
	wait, err := parseSleep(body)
	isTaken := c.pending[number] != nil || number == wire.NoAnswer
	if err != nil || isTaken || len(c.pending) >= a.cfg.Limits.HostCallsAtOnce+maxSleeps {
		c.refuse(number, errRequest)
		return
	}

	p := &pendingCall{number: number, isSleep: true, reply: Reply{ASCII: true}}
	c.begin(a, p, func(ctx context.Context, _ *pendingCall) {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	})
}

func (c *Connection) refuse(number uint32, err error) {
	_ = c.answer(number, fail(err)) // cannot fail, because the text is not in a mapping
}

// begin runs a call on a new goroutine.
func (c *Connection) begin(
	a *Accounts, p *pendingCall, work func(ctx context.Context, p *pendingCall),
) {
	ctx, cancel := context.WithCancel(a.calls.ctx)
	p.cancel = cancel
	if len(c.pending) == 0 {
		a.slot.Pause()
	}
	c.pending[p.number] = p

	ended, calls := c.ended, &a.calls
	calls.running.Go(func() {
		defer cancel()
		work(ctx, p)
		select {
		case ended <- p:
		case <-calls.ctx.Done():
		}
	})
}

// finishCall answers a call that has ended. An error means that the host cannot answer.
func (c *Connection) finishCall(a *Accounts, call *pendingCall) error {
	if a.IsCanceled() {
		return nil // the cancellation ended the call; the guest is interrupted instead
	}

	delete(c.pending, call.number)
	defer a.release(call.value)
	if err := c.answer(call.number, call.reply); err != nil {
		a.Fail(err)
		return err
	}
	return nil
}

func (c *Connection) abandonCalls() {
	for _, call := range c.pending {
		call.cancel()
	}
}
