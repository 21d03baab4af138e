package calls

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/repl/ledger"
)

// StatusOf returns the status and the reason of a run that an error ended early. Running out of
// budget is not an error, so left is then nil.
func StatusOf(ctx context.Context, err error) (status ledger.Status, reason string, left error) {
	var budget *ledger.BudgetError
	var stopped *runlog.StoppedError
	var parked *runlog.ParkedError
	switch {
	case errors.As(context.Cause(ctx), &parked) || errors.As(err, &parked):
		return ledger.StatusParked, parked.Error(), nil
	case errors.As(context.Cause(ctx), &stopped):
		err = stopped
	case errors.As(err, &budget) || errors.As(context.Cause(ctx), &budget):
		return ledger.StatusPartial, budget.Error(), nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
		return ledger.StatusCanceled, err.Error(), err
	}

	return ledger.StatusFailed, err.Error(), err
}
