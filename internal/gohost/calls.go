// Package gohost is the host's half of a Go session, whatever runs its snippets:
// it answers what a snippet asks (host calls, parts of a lazy text), keeps the
// answers for the day the snippet runs again, and meters time and output. The
// other half is package gorun.
package gohost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/internal/inflight"
	"github.com/rlmhq/rlm/tiers"
)

// Answered is one host call that was made, as a journal keeps it.
type Answered struct {
	Function string            `json:"function"`
	Args     []json.RawMessage `json:"args"`
	Value    json.RawMessage   `json:"value,omitempty"`
	Error    string            `json:"error,omitempty"`
}

// Session is what the calls of all its turns have in common.
type Session struct {
	Config tiers.Config
	// Offers are the functions that may be called.
	Offers map[string]bool
	// Canonical, if set, takes out of a call what may differ when it is made
	// again by the same snippet.
	Canonical func([]byte) []byte

	gate *inflight.Gate
}

// NewSession returns a session's half, with the defaults of its limits and a host
// that has no functions where there is none.
func NewSession(cfg tiers.Config) *Session {
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.Host == nil {
		cfg.Host = tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
			return nil, errors.New("this session has no host functions")
		})
	}
	s := &Session{Config: cfg, Offers: map[string]bool{"llm_query": true}, gate: inflight.New(cfg.Limits)}
	for _, f := range cfg.Functions {
		s.Offers[f.Name] = true
	}
	return s
}

// key is what a replayed call must have in common with the journal's. The order
// of calls is not: goroutines make them in any.
func (s *Session) key(a Answered) string {
	body, err := json.Marshal([]any{a.Function, a.Args})
	if err != nil {
		return "" // raw messages were decoded, so they encode
	}
	if s.Canonical != nil {
		body = s.Canonical(body)
	}
	return string(body)
}

// Calls answers the requests of one turn.
type Calls struct {
	// Final is the answer that the snippet gave, nil if none.
	Final *tiers.Final
	// Reply sends an answer to request id, one at a time. os.ErrDeadlineExceeded says that
	// the guest does not take it; other errors show where it is read from.
	Reply func(id uint64, value []byte, err error) error
	// Meter is told when the snippet waits for the host.
	Meter *Meter

	session *Session
	snippet int
	limits  tiers.Limits
	ctx     context.Context //nolint:containedctx // of the turn: requests arrive as frames
	made    int
	refused bool
	texts   chan struct{} // holds an answer about a text while it is made and sent
	running sync.WaitGroup

	sending sync.Mutex
	deaf    atomic.Bool // the guest has not taken an answer; written while sending

	mu      sync.Mutex // guards what follows
	journal []Answered
	replay  map[string][]Answered // answers given before, nil in a turn that is new
	strayed bool                  // a replayed snippet asked something else
	asked   int                   // bytes of questions that wait for an answer
}

// Bounds of what a guest can make the host hold: so many answers about texts at a
// time, and so many bytes of questions, each counted as some more for itself.
const (
	textsAtOnce   = 2
	maxAsked      = 64 << 20
	questionBytes = 4 << 10
)

// Turn prepares the calls of a snippet. With a journal, even an empty one, it is a
// replay, which the host hears nothing of.
func (s *Session) Turn(ctx context.Context, snippet int, journal []Answered) *Calls {
	c := &Calls{
		session: s, snippet: snippet, limits: s.Config.Limits, ctx: ctx,
		texts: make(chan struct{}, textsAtOnce),
	}
	if journal != nil {
		c.replay = map[string][]Answered{}
		for _, a := range journal {
			key := s.key(a)
			c.replay[key] = append(c.replay[key], a)
		}
	}
	return c
}

// Journal is what was answered. It is whole after Wait.
func (c *Calls) Journal() []Answered { return c.journal }

// Strayed reports whether a replayed snippet asked what it had not asked before.
func (c *Calls) Strayed() bool { return c.strayed }

// Wait waits for the calls that are under way. The turn's context must be done,
// or they may take as long as the host likes.
func (c *Calls) Wait() { c.running.Wait() }

// reply sends an answer. A guest that has not taken one gets no other: each would be
// waited for as long, and there may be thousands.
func (c *Calls) reply(id uint64, value []byte, err error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if !c.deaf.Load() && errors.Is(c.Reply(id, value, err), os.ErrDeadlineExceeded) {
		c.deaf.Store(true)
	}
}

// Deaf reports whether the guest has not taken an answer. Its connection is of no more
// use then: a part of the answer may be on it.
func (c *Calls) Deaf() bool { return c.deaf.Load() }

// Handle takes one frame of the guest, if it is a request or the session's answer.
// It is called by one goroutine.
func (c *Calls) Handle(kind byte, body []byte) (handled bool, err error) {
	if c.Deaf() {
		return true, ErrProtocol
	}
	switch kind {
	case gorun.KindCall:
		var call gorun.Call
		if err := gorun.Decode(body, &call); err != nil {
			return true, err
		}
		c.start(call)
	case gorun.KindText:
		var question gorun.Question
		if err := gorun.Decode(body, &question); err != nil {
			return true, err
		}
		return true, c.ask(question)
	case gorun.KindFinal:
		var final gorun.Final
		if err := gorun.Decode(body, &final); err != nil {
			return true, err
		}
		if c.Final == nil && final.Value != nil {
			c.Final = &tiers.Final{Value: final.Value, Name: final.Name}
		}
	default:
		return false, nil
	}
	return true, nil
}

// start makes one host call on a goroutine of its own.
func (c *Calls) start(call gorun.Call) {
	c.made++
	ordinal := c.made
	if ordinal > c.limits.HostCalls {
		c.refused = true
		c.reply(call.ID, nil, fmt.Errorf("the snippet may make %d host calls, no more", c.limits.HostCalls))
		return
	}
	if !c.session.Offers[call.Function] {
		c.reply(call.ID, nil, fmt.Errorf("there is no host function %q", call.Function))
		return
	}
	size := 0
	for _, arg := range call.Args {
		size += len(arg)
	}
	if err := c.session.gate.Hold(size); err != nil {
		c.reply(call.ID, nil, err)
		return
	}
	c.Meter.callBegins()
	c.running.Go(func() {
		defer c.session.gate.Free(size)
		value, err := c.answer(call, ordinal)
		c.Meter.callEnds()
		c.reply(call.ID, value, err)
	})
}

// answer takes a call's answer from the journal, or from the host.
func (c *Calls) answer(call gorun.Call, ordinal int) (json.RawMessage, error) {
	a := Answered{Function: call.Function, Args: call.Args}
	if c.replay != nil {
		return c.again(c.session.key(a))
	}
	if err := c.session.gate.Enter(c.ctx); err != nil {
		return nil, err
	}
	defer c.session.gate.Leave()
	value, err := c.session.Config.Host.Call(c.ctx, tiers.Call{
		Function: call.Function, Args: call.Args, Named: map[string]tiers.Value{},
		Snippet: c.snippet, Ordinal: ordinal,
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

func (c *Calls) again(key string) (json.RawMessage, error) {
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

// ask answers a question about a lazy text. A guest that asks faster than it takes
// answers breaks the protocol.
func (c *Calls) ask(q gorun.Question) error {
	size := questionBytes + len(q.Needle)
	c.mu.Lock()
	c.asked += size
	over := c.asked > maxAsked
	c.mu.Unlock()
	if over {
		return ErrProtocol
	}
	c.running.Go(func() {
		select {
		case c.texts <- struct{}{}: // until the answer has been sent
			defer func() { <-c.texts }()
		case <-c.ctx.Done():
			return
		}
		value, err := c.session.text(c.ctx, q)
		c.mu.Lock()
		c.asked -= size
		c.mu.Unlock()
		c.reply(q.ID, value, err)
	})
	return nil
}
