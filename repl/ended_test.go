package repl

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestEndedTellsTheStatus(t *testing.T) {
	spent := &BudgetError{What: "calls", Limit: 1, Spent: 1, Needed: 1}
	left := errors.New("the user has left")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(left)
	ledger, err := NewLedger(Budget{Wall: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	late, stop := ledger.Within(t.Context())
	defer stop()
	<-late.Done()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want Status
		left error
	}{
		{"budget", t.Context(), fmt.Errorf("a call: %w", spent), StatusPartial, nil},
		{"time", late, errors.New("the server hung up"), StatusPartial, nil},
		{"cancelled", canceled, errors.New("the server hung up"), StatusCanceled, left},
		{"broken", t.Context(), left, StatusFailed, left},
	} {
		status, reason, err := Ended(c.ctx, c.err)
		if status != c.want || reason == "" || !errors.Is(err, c.left) || (err == nil) != (c.left == nil) {
			t.Errorf("%s: %s, %q, %v", c.name, status, reason, err)
		}
	}
}
