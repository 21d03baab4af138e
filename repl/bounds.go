package repl

import (
	"context"
	"errors"
)

// Within returns a context that ends with the budget of time. Its cause is then a
// [*BudgetError].
func (l *Ledger) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := l.budget.Wall.Seconds()
	return context.WithDeadlineCause(ctx, l.Deadline(), &BudgetError{What: "seconds", Limit: limit, Spent: limit})
}

// UsedUp returns the budget that ended a run: err is what stopped it, ctx the run's
// context. It is nil if something else did.
func UsedUp(ctx context.Context, err error) *BudgetError {
	var budget *BudgetError
	if errors.As(err, &budget) || errors.As(context.Cause(ctx), &budget) {
		return budget
	}
	return nil
}

// Watched returns what a [Caller] hands its events to: they go into the record, if
// there is one, and to progress, which may be nil. Pieces of replies are not
// recorded, since the replies are.
func (t *Trace) Watched(progress func(Event)) func(Event) {
	if t == nil {
		return progress
	}
	return func(e Event) {
		if e.Kind != EventDelta {
			t.Event(e)
		}
		if progress != nil {
			progress(e)
		}
	}
}
