package session

import (
	"context"
	"time"

	"github.com/rlmhq/rlm/internal/turns"
)

// waitForTurn waits until the next snippet may compute. endTurn must follow.
func (a *Accounts) waitForTurn(ctx context.Context) (err error) {
	a.turn, err = turns.Wait(ctx)
	a.queued = 0
	return err
}

// endTurn ends the snippet's claim to a processor. It is idempotent.
func (a *Accounts) endTurn() {
	if a.turn != nil {
		a.queued = a.turn.End()
		a.turn = nil
	}
}

// resumeTurn ends a pause of the turn.
func (a *Accounts) resumeTurn() { a.noteQueued(a.turn.Resume(a.calls.ctx)) }

// Yield lets other snippets compute if this one has computed for a while. A guest that can
// be paused anywhere calls it often.
func (a *Accounts) Yield() { a.noteQueued(a.turn.Yield(a.calls.ctx)) }

func (a *Accounts) noteQueued(waited time.Duration) { a.meter.queued += waited }
