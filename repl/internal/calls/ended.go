package calls

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm/repl/ledger"
)

// StatusOf makes a status and its reason of the error that ended a run early. A budget
// that was used up is no error: what comes back is nil then.
func StatusOf(ctx context.Context, err error) (status ledger.Status, reason string, left error) {
	var budget *ledger.BudgetError
	switch {
	case errors.As(err, &budget) || errors.As(context.Cause(ctx), &budget):
		return ledger.StatusPartial, budget.Error(), nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
		return ledger.StatusCanceled, err.Error(), err
	}

	return ledger.StatusFailed, err.Error(), err
}
