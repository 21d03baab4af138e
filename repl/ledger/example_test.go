package ledger_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

// What one run leaves of a budget is the budget of the next.
func ExampleBudget_Subtract() {
	budget := ledger.Budget{Calls: 10, USD: 2}
	rest, err := budget.Subtract(
		ledger.Spending{Calls: 4, InputTokens: 12_000, USD: 0.5}, time.Minute,
	)
	fmt.Println(rest.Calls, rest.USD, rest.Wall, err)

	_, err = rest.Subtract(ledger.Spending{Calls: 6}, time.Minute)
	var used *ledger.BudgetError
	fmt.Println(errors.As(err, &used), used.What)
	// Output:
	// 6 1.5 59m0s <nil>
	// true calls
}
