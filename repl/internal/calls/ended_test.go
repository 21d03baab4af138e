package calls

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

func TestEndedTellsTheStatus(t *testing.T) {
	spent := &ledger.BudgetError{What: "calls", Limit: 1, Spent: 1, Needed: 1}
	left := errors.New("the user has left")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(left)
	accounts, err := NewLedger(ledger.Budget{Wall: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	late, stop := accounts.WithDeadline(t.Context())
	defer stop()
	<-late.Done()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want ledger.Status
		left error
	}{
		{"budget", t.Context(), fmt.Errorf("a call: %w", spent), ledger.StatusPartial, nil},
		{"time", late, errors.New("the server hung up"), ledger.StatusPartial, nil},
		{"cancelled", canceled, errors.New("the server hung up"), ledger.StatusCanceled, left},
		{"broken", t.Context(), left, ledger.StatusFailed, left},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, reason, err := StatusOf(c.ctx, c.err)
			if status != c.want || reason == "" || !errors.Is(err, c.left) ||
				(err == nil) != (c.left == nil) {
				t.Errorf("%s: %s, %q, %v", c.name, status, reason, err)
			}
		})
	}
}
