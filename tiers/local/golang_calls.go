package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local/gorun"
)

// answeredCall is one host call that was made, for the journal.
type answeredCall struct {
	Function string            `json:"function"`
	Args     []json.RawMessage `json:"args"`
	Value    json.RawMessage   `json:"value,omitempty"`
	Error    string            `json:"error,omitempty"`
}

// key is what a replayed call must have in common with the journal's. The order
// of calls is not: goroutines make them in any.
func (a answeredCall) key() string {
	body, err := json.Marshal([]any{a.Function, a.Args})
	if err != nil {
		return "" // raw messages were decoded, so they encode
	}
	return string(suffix.ReplaceAll(body, nil))
}

// goCalls answers the requests of one turn.
type goCalls struct {
	ctx     context.Context //nolint:containedctx // of the turn: requests arrive as frames
	turn    *goTurn
	made    int
	refused bool
	slots   chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex // guards what follows
	journal []answeredCall
	replay  map[string][]answeredCall // answers given before, nil in a turn that is new
	strayed bool                      // a replayed snippet asked something else
}

func (c *goCalls) begin(ctx context.Context, t *goTurn) {
	c.ctx, c.turn = ctx, t
	c.slots = make(chan struct{}, t.limits.HostCallsAtOnce)
}

// start makes one host call on a goroutine of its own.
func (c *goCalls) start(call gorun.Call) {
	c.made++
	ordinal := c.made
	if ordinal > c.turn.limits.HostCalls {
		c.refused = true
		c.reply(call.ID, nil, fmt.Errorf("the snippet may make %d host calls, no more", c.turn.limits.HostCalls))
		return
	}
	if !c.turn.session.offered[call.Function] {
		c.reply(call.ID, nil, fmt.Errorf("there is no host function %q", call.Function))
		return
	}
	c.turn.meter.callBegins()
	c.running.Go(func() {
		value, err := c.answer(call, ordinal)
		c.turn.meter.callEnds()
		c.reply(call.ID, value, err)
	})
}

// answer takes a call's answer from the journal, or from the host.
func (c *goCalls) answer(call gorun.Call, ordinal int) (json.RawMessage, error) {
	a := answeredCall{Function: call.Function, Args: call.Args}
	if c.replay != nil {
		return c.again(a.key())
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
	value, err := c.turn.session.cfg.Host.Call(c.ctx, tiers.Call{
		Function: call.Function, Args: call.Args, Named: map[string]tiers.Value{},
		Snippet: c.turn.session.snippet, Ordinal: ordinal,
	})
	if err == nil && len(value) == 0 {
		value = json.RawMessage("null")
	}
	if err == nil && !json.Valid(value) {
		err = errors.New("the host function returned something that is not JSON")
	}
	if a.Value = value; err != nil {
		a.Value, a.Error = nil, err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.journal = append(c.journal, a)
	return value, err
}

func (c *goCalls) again(key string) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.replay[key]
	if len(left) == 0 {
		c.strayed = true
		return nil, errors.New("this call was not made the first time")
	}
	c.replay[key] = left[1:]
	if left[0].Error != "" {
		return nil, errors.New(left[0].Error)
	}
	return left[0].Value, nil
}

// reply sends an answer. A program that does not take it is about to be found
// dead.
func (c *goCalls) reply(id uint64, value []byte, err error) {
	_ = c.turn.program.send(gorun.KindAnswer, gorun.AppendAnswer(id, value, err))
}

// ask answers a question about a lazy text.
func (c *goCalls) ask(q gorun.Question) {
	c.running.Go(func() {
		value, err := c.turn.session.text(c.ctx, q)
		c.reply(q.ID, value, err)
	})
}
