package calls_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
)

func TestTheBudgetOfTimeIsTheContextsCause(t *testing.T) {
	accounts, err := calls.NewLedger(ledger.Budget{Wall: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := accounts.WithDeadline(t.Context())
	defer cancel()
	<-ctx.Done()
	var budget *ledger.BudgetError
	if !errors.As(context.Cause(ctx), &budget) || budget.What != "seconds" ||
		budget.Limit != 0.001 {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

func TestAnEarlyEndHasAStatus(t *testing.T) {
	broken, gone := errors.New("broken"), errors.New("gone")
	late, cancelLate := context.WithDeadlineCause(
		t.Context(), time.Now(), &ledger.BudgetError{What: "seconds"},
	)
	defer cancelLate()
	left, leave := context.WithCancelCause(t.Context())
	leave(gone)
	for _, c := range []struct {
		ctx    context.Context
		err    error
		status ledger.Status
		back   error
	}{
		{t.Context(), fmt.Errorf("call: %w", &ledger.BudgetError{What: "calls"}), ledger.StatusPartial, nil},
		{late, broken, ledger.StatusPartial, nil},
		{left, broken, ledger.StatusCanceled, gone},
		{t.Context(), broken, ledger.StatusFailed, broken},
	} {
		status, reason, back := calls.StatusOf(c.ctx, c.err)
		if status != c.status || !errors.Is(back, c.back) || reason == "" {
			t.Errorf("%v ended as %s, %q, %v", c.err, status, reason, back)
		}
	}
}
