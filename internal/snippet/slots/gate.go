package slots

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Gate replaces the slots of a snippet whose slots are assigned by another process. The snippet
// passes the gate often, and waits at the gate while it is shut. The other process numbers the
// periods for which it shuts the gate, because its messages may be handled in any order. A Gate is
// safe for concurrent use.
type Gate struct {
	isShut atomic.Bool

	mu      sync.Mutex // guards the fields below
	over    int        // the last period that is over
	opened  chan struct{}
	stopped chan struct{} // closed when the snippet has stopped; nil until requested
	isAway  bool          // the snippet is waiting at the gate
	pauses  int           // number of waits for the host
}

type gateKey struct{}

// NewGate returns an open gate, for periods numbered above over.
func NewGate(over int) *Gate { return &Gate{over: over} }

// With returns a context whose snippet passes the gate.
func (g *Gate) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// errOpen reports that the gate was opened for a period before it was shut for that period.
var errOpen = errors.New("the snippet goes on already")

// Shut stops the snippet for the period with this number, until Open. It returns once the snippet
// has stopped or waits for its host. If the context ends first, the gate is reopened.
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

// Open ends the period with this number, and all earlier ones.
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

// pass waits while the gate is shut, and returns the waiting time.
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
	case <-ctx.Done(): // the snippet must notice its end
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	g.isAway = false
	return time.Since(begun)
}

// tell signals that the snippet has stopped. The caller holds mu.
func (g *Gate) tell() {
	if g.stopped != nil {
		close(g.stopped)
		g.stopped = nil
	}
}

// pause records that the snippet starts or stops waiting for its host.
func (g *Gate) pause(change int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pauses = max(0, g.pauses+change)

	if g.pauses > 0 {
		g.tell()
	}
}
