package interp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// answered is one host call that was made, for the journal.
type answered struct {
	Function string            `json:"function"`
	Args     []json.RawMessage `json:"args"`
	Value    json.RawMessage   `json:"value,omitempty"`
	Error    string            `json:"error,omitempty"`
}

// key is what a replayed call must have in common with the journal's. The order
// of calls is not: goroutines make them in any.
func (a answered) key() string {
	body, err := json.Marshal([]any{a.Function, a.Args})
	if err != nil {
		return "" // raw messages were decoded, so they encode
	}
	return string(body)
}

// calls answers the requests of one turn.
type calls struct {
	ctx     context.Context //nolint:containedctx // of the turn: requests arrive as frames
	turn    *turn
	made    int
	refused bool
	slots   chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex // guards what follows
	journal []answered
	replay  map[string][]answered // answers given before, nil in a turn that is new
	strayed bool                  // a replayed snippet asked something else
}

func (c *calls) begin(ctx context.Context, t *turn) {
	c.ctx, c.turn = ctx, t
	c.slots = make(chan struct{}, t.limits.HostCallsAtOnce)
}

var errProtocol = errors.New("the worker sent what it may not send")

// start makes one host call on a goroutine of its own.
func (c *calls) start(call wire.Call) {
	c.made++
	ordinal := c.made
	if ordinal > c.turn.limits.HostCalls {
		c.refused = true
		c.reply(call.ID, nil, fmt.Errorf("the snippet may make %d host calls, no more", c.turn.limits.HostCalls))
		return
	}
	if !c.turn.box.offers(call.Function) {
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
func (c *calls) answer(call wire.Call, ordinal int) (json.RawMessage, error) {
	a := answered{Function: call.Function, Args: call.Args}
	if c.replay != nil {
		return c.again(a.key())
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
	value, err := c.turn.box.cfg.Host.Call(c.ctx, tiers.Call{
		Function: call.Function, Args: call.Args, Named: map[string]tiers.Value{},
		Snippet: c.turn.box.snippet, Ordinal: ordinal,
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

func (c *calls) again(key string) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.replay[key]
	if len(left) == 0 {
		c.strayed = true
		return nil, errors.New("this call was not made the first time")
	}
	c.replay[key] = left[1:]
	c.journal = append(c.journal, left[0])
	if left[0].Error != "" {
		return nil, errors.New(left[0].Error)
	}
	return left[0].Value, nil
}

// reply sends an answer. A worker that does not take it is about to be found dead.
func (c *calls) reply(id uint64, value []byte, err error) {
	_ = c.turn.worker.send(wire.KindAnswer, wire.Answer(id, value, err))
}

// ask answers a question about a lazy text.
func (c *calls) ask(q wire.Text) {
	c.running.Go(func() {
		value, err := c.turn.box.text(c.ctx, q)
		c.reply(q.ID, value, err)
	})
}

// mostText bounds the part of a text that is handed over at a time.
const mostText = 64 << 20

// text answers a question about a lazy text. The numbers in it are hostile;
// package bigtext checks ranges.
func (s *sandbox) text(ctx context.Context, q wire.Text) ([]byte, error) {
	if q.Input < 0 || q.Input >= len(s.cfg.Inputs) || s.cfg.Inputs[q.Input].Text == nil {
		return nil, fmt.Errorf("input %d is no text", q.Input)
	}
	text := s.cfg.Inputs[q.Input].Text
	var n int64
	var err error
	switch q.Op {
	case wire.OpSlice:
		return sliceOf(ctx, text, q.A, q.B)
	case wire.OpFind:
		n, err = text.Find(ctx, []byte(q.Needle), q.A, q.B)
	case wire.OpRFind:
		n, err = text.RFind(ctx, []byte(q.Needle), q.A, q.B)
	case wire.OpCount:
		n, err = text.Count(ctx, []byte(q.Needle), q.A, q.B)
	case wire.OpLines:
		n, err = text.Parts(ctx, bigtext.Newlines(), q.A, q.B)
	case wire.OpLine:
		return linesOf(ctx, text, q.A, q.B)
	default:
		return nil, errProtocol
	}
	return strconv.AppendInt(nil, n, 10), err
}

func sliceOf(ctx context.Context, text *bigtext.Text, a, b int64) ([]byte, error) {
	data, _, err := text.Slice(ctx, a, b)
	if err != nil {
		return nil, err
	}
	if len(data) > mostText {
		return nil, fmt.Errorf("%d bytes are too many for one string, take %d at a time", len(data), mostText)
	}
	var own []byte
	err = bigtext.Guard(text, func() { own = append([]byte{}, data...) })
	return own, err
}

// linesOf returns the lines a to b-1, each with a line feed at its end.
func linesOf(ctx context.Context, text *bigtext.Text, a, b int64) ([]byte, error) {
	length, err := text.Len(ctx)
	if err != nil {
		return nil, err
	}
	count, err := text.Parts(ctx, bigtext.Newlines(), 0, length)
	if err != nil {
		return nil, err
	}
	b = min(b, count)
	if a >= b {
		return nil, nil
	}
	start, end, err := text.PartsRange(ctx, bigtext.Newlines(), 0, length, a, b)
	if err != nil {
		return nil, err
	}
	data, err := sliceOf(ctx, text, start, end)
	return append(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), '\n'), err
}
