package repl

import (
	"context"
	"errors"
)

// Status says how a run of a loop ended.
type Status string

// The ways in which a run ends.
const (
	// StatusAnswered: the model gave its answer, and it is as it must be.
	StatusAnswered Status = "answered"
	// StatusSynthesised: the turns ran out, and the model gave its best answer when
	// it was asked to.
	StatusSynthesised Status = "synthesised"
	// StatusPartial: the budget was used up first.
	StatusPartial Status = "partial"
	// StatusNoAnswer: the turns ran out without an answer that is as it must be.
	StatusNoAnswer Status = "no_answer"
	// StatusCanceled: the caller ended the run.
	StatusCanceled Status = "canceled"
	// StatusFailed: something broke; the loop returns the error.
	StatusFailed Status = "failed"
)

// Ended makes a status and its reason of the error that ended a run early. A budget
// that was used up is no error: what comes back is nil then.
func Ended(ctx context.Context, err error) (status Status, reason string, left error) {
	var budget *BudgetError
	switch {
	case errors.As(err, &budget) || errors.As(context.Cause(ctx), &budget):
		return StatusPartial, budget.Error(), nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
		return StatusCanceled, err.Error(), err
	}
	return StatusFailed, err.Error(), err
}

// Within returns a context that ends with the ledger's budget of time. Its cause is
// a [*BudgetError].
func (l *Ledger) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := l.budget.Wall.Seconds()
	return context.WithDeadlineCause(ctx, l.Deadline(), &BudgetError{What: "seconds", Limit: limit, Spent: limit})
}
