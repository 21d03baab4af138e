package repl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl"
)

func TestTheBudgetOfTimeIsTheContextsCause(t *testing.T) {
	ledger, err := repl.NewLedger(repl.Budget{Wall: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := ledger.Within(t.Context())
	defer cancel()
	<-ctx.Done()
	var budget *repl.BudgetError
	if !errors.As(context.Cause(ctx), &budget) || budget.What != "seconds" || budget.Limit != 0.001 {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

func TestAnEarlyEndHasAStatus(t *testing.T) {
	broken, gone := errors.New("broken"), errors.New("gone")
	late, cancelLate := context.WithDeadlineCause(t.Context(), time.Now(), &repl.BudgetError{What: "seconds"})
	defer cancelLate()
	left, leave := context.WithCancelCause(t.Context())
	leave(gone)
	for _, c := range []struct {
		ctx    context.Context
		err    error
		status repl.Status
		back   error
	}{
		{t.Context(), fmt.Errorf("call: %w", &repl.BudgetError{What: "calls"}), repl.StatusPartial, nil},
		{late, broken, repl.StatusPartial, nil},
		{left, broken, repl.StatusCanceled, gone},
		{t.Context(), broken, repl.StatusFailed, broken},
	} {
		status, reason, back := repl.Ended(c.ctx, c.err)
		if status != c.status || !errors.Is(back, c.back) || reason == "" {
			t.Errorf("%v ended as %s, %q, %v", c.err, status, reason, back)
		}
	}
}
