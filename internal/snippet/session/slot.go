package session

import (
	"context"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/slots"
)

// waitForSlot waits until the next snippet may compute. The caller must call endSlot afterwards.
func (a *Accounts) waitForSlot(ctx context.Context) (err error) {
	a.slot, err = slots.Wait(ctx)
	a.queued = 0
	return err
}

// endSlot ends the snippet's claim to a processor. It is idempotent.
func (a *Accounts) endSlot() {
	if a.slot != nil {
		a.slot.End()
		a.queued, a.slot = a.slot.Waited(), nil
	}
}

// resumeSlot ends a pause of the slot.
func (a *Accounts) resumeSlot() { a.noteQueued(a.slot.Resume(a.calls.ctx)) }

// resumeSlot ends a pause of the slot. The process continues in the meantime; its limits include
// the time for which it computes without a slot.
func (c *Connection) resumeSlot(a *Accounts) {
	source, isKnown := c.control.(Processor)
	if !isKnown || !a.slot.IsLost() {
		a.resumeSlot()
		return
	}
	before := source.Processor()
	waited := a.slot.Resume(a.calls.ctx)
	a.noteQueued(waited - max(0, min(waited, source.Processor()-before)))
}

// Yield lets other snippets compute if this one has computed for a while. A guest that can be
// paused anywhere calls Yield often.
func (a *Accounts) Yield() { a.noteQueued(a.slot.Yield(a.calls.ctx)) }

func (a *Accounts) noteQueued(waited time.Duration) { a.meter.queued += waited }
