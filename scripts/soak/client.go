package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tiers"
)

// client is one caller. It runs snippets in a session, one after another, and occasionally
// continues in a fork or in a new session.
type client struct {
	engine *rlm.Engine
	tenant string
	random *rand.Rand

	session *rlm.Session
	counted int // runs of the counting snippet
	reopen  bool
}

// The limits of every snippet.
var snippetLimits = tiers.Limits{Wall: 2 * time.Second, Memory: 128 << 20}

// outcome is the result of one snippet.
type outcome struct {
	kind    string
	took    time.Duration
	refused bool
	wrong   string // empty if the verdict is correct
}

// next runs one snippet of the mix.
func (c *client) next(ctx context.Context) (outcome, error) {
	if err := c.prepare(ctx); err != nil {
		return outcome{}, err
	}

	k := c.choose()
	begun := time.Now()
	result, err := c.session.RunJob(ctx, k.job(c))
	o := outcome{kind: k.name, took: time.Since(begun)}

	switch {
	case ctx.Err() != nil:
		return o, ctx.Err()
	case errors.Is(err, rlm.ErrBusy):
		o.refused = true
	case err != nil:
		c.reopen = true
		o.wrong = err.Error()
	default:
		o.wrong = k.check(c, &result)
	}
	return o, nil
}

func (c *client) choose() *kind {
	all := 0
	for i := range mix {
		all += mix[i].weight
	}

	at := c.random.IntN(all)
	for i := range mix {
		if at -= mix[i].weight; at < 0 {
			return &mix[i]
		}
	}
	panic("unreachable: at is less than the sum of the weights")
}

// prepare opens a session if there is none, and replaces the session from time to time.
func (c *client) prepare(ctx context.Context) error {
	switch {
	case c.session == nil:
	case c.reopen || c.random.IntN(10) == 0:
		if err := c.close(); err != nil {
			return err
		}
	case c.random.IntN(50) == 0:
		return c.fork(ctx)
	}
	if c.session != nil {
		return nil
	}

	c.reopen, c.counted = false, 0
	var err error
	c.session, err = c.engine.Open(ctx, rlm.SessionConfig{
		Limits: snippetLimits, Labels: map[string]string{"tenant": c.tenant},
		Functions: []rlm.Function{lookup},
	})
	return err
}

func (c *client) fork(ctx context.Context) error {
	fork, err := c.session.Fork(ctx)
	if err != nil {
		return err
	}

	err = c.close()
	c.session = fork
	return err
}

func (c *client) close() error {
	if c.session == nil {
		return nil
	}
	err := c.session.Close()
	c.session = nil
	return err
}

// lookup answers about as slowly as a nearby service would.
var lookup = rlm.Func("lookup", "lookup(key) -> str", func(ctx context.Context, in struct {
	Key string `json:"key"`
},
) (string, error) {
	select {
	case <-time.After(20 * time.Millisecond):
		return fmt.Sprintf("value of %s", in.Key), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
})
