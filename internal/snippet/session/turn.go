package session

import (
	"context"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/slots"
)

// waitForTurn waits until the next snippet may compute. endTurn must follow.
func (a *Accounts) waitForTurn(ctx context.Context) (err error) {
	a.turn, err = slots.Wait(ctx)
	a.queued = 0
	return err
}

// endTurn ends the snippet's claim to a processor. It is idempotent.
func (a *Accounts) endTurn() {
	if a.turn != nil {
		a.turn.End()
		a.queued, a.turn = a.turn.Waited(), nil
	}
}

// resumeTurn ends a pause of the turn.
func (a *Accounts) resumeTurn() { a.noteQueued(a.turn.Resume(a.calls.ctx)) }

// resumeTurn ends a pause of the turn. Meanwhile the process goes on: its limits count what it
// computes while it has no turn.
func (c *Connection) resumeTurn(a *Accounts) {
	source, isKnown := c.control.(Processor)
	if !isKnown || !a.turn.IsLost() {
		a.resumeTurn()
		return
	}
	before := source.Processor()
	waited := a.turn.Resume(a.calls.ctx)
	a.noteQueued(waited - max(0, min(waited, source.Processor()-before)))
}

// Yield lets other snippets compute if this one has computed for a while. A guest that can
// be paused anywhere calls it often.
func (a *Accounts) Yield() { a.noteQueued(a.turn.Yield(a.calls.ctx)) }

func (a *Accounts) noteQueued(waited time.Duration) { a.meter.queued += waited }
