package ledger_test

import (
	"fmt"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

// A zero field of a budget means its default.
func ExampleBudget_WithDefaults() {
	budget := ledger.Budget{Calls: 10, USD: 2, Wall: time.Minute}.WithDefaults()
	fmt.Println(budget.Calls, budget.Tokens, budget.USD, budget.Wall)
	// Output: 10 55000000 2 1m0s
}
