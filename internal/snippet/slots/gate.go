package slots

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Gate takes the place of turns for a snippet whose turns another process gives out. The snippet
// passes the gate often, and waits there while the gate is shut. The other process numbers the
// times for which it shuts the gate, because its messages may be handled in any order. A Gate is safe
// for concurrent use.
type Gate struct {
	isShut atomic.Bool

	mu      sync.Mutex // guards what follows
	over    int        // the last time for which the gate was shut and is open again
	opened  chan struct{}
	stopped chan struct{} // closed when the snippet has stopped, nil while nobody asks
	isAway  bool          // it waits at the gate
	pauses  int           // it waits for the host
}

type gateKey struct{}

// NewGate returns a gate that is open, for times behind the one with a number.
func NewGate(over int) *Gate { return &Gate{over: over} }

// With returns a context whose snippet passes the gate.
func (g *Gate) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// errOpen says that the gate was opened before it was shut.
var errOpen = errors.New("the snippet goes on already")

// Shut stops the snippet for the time with this number, until Open. It returns when the snippet has
// stopped or waits for its host. If the context ends before that, the gate is open again.
func (g *Gate) Shut(ctx context.Context, number int) error {
	g.mu.Lock()
	if number <= g.over {
		g.mu.Unlock()
		return errOpen
	}
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
	g.isShut.Store(true)
	if g.isAway || g.pauses > 0 {
		g.mu.Unlock()
		return nil
	}

	stopped := make(chan struct{})
	g.stopped = stopped
	g.mu.Unlock()

	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		g.Open(number)
		return context.Cause(ctx)
	}
}

// Open ends the time with this number, and all before it.
func (g *Gate) Open(number int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = max(g.over, number)
	g.isShut.Store(false)

	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
	g.stopped = nil
}

// pass waits while the gate is shut, and returns how long.
func (g *Gate) pass(ctx context.Context) time.Duration {
	if !g.isShut.Load() {
		return 0
	}

	begun := time.Now()
	g.mu.Lock()
	opened := g.opened
	if opened == nil {
		g.mu.Unlock()
		return 0
	}
	g.isAway = true
	g.tell()
	g.mu.Unlock()

	select {
	case <-opened:
	case <-ctx.Done(): // the snippet has to notice its end
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	g.isAway = false
	return time.Since(begun)
}

// tell says that the snippet has stopped. The caller holds mu.
func (g *Gate) tell() {
	if g.stopped != nil {
		close(g.stopped)
		g.stopped = nil
	}
}

// pause says that the snippet waits for its host, or no longer.
func (g *Gate) pause(change int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pauses = max(0, g.pauses+change)

	if g.pauses > 0 {
		g.tell()
	}
}
