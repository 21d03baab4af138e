package repl

import (
	"context"
	"errors"
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
