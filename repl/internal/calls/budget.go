package calls

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

// CheckBudget returns an error for the first invalid field.
func CheckBudget(b ledger.Budget) error {
	switch {
	case b.Calls < 0 || b.ToolCalls < 0 || b.InputTokens < 0 || b.OutputTokens < 0 || b.Tokens < 0 || b.Wall < 0:
		return errors.New("a limit of the budget is negative: give a positive value, or 0 for the default")
	case !(b.USD >= 0) || b.USD > 1e9:
		return fmt.Errorf("the budget is %v US dollars: "+
			"give a number from 0 (the default) to 1000000000", b.USD)
	}

	return nil
}

// Subtract returns the rest of a budget after a run, for consecutive runs that share one budget. A
// zero field becomes the rest of its default, except USD, which remains a guard against accidents.
// The error is a [*ledger.BudgetError] if a field is used up.
func Subtract(
	b ledger.Budget, used ledger.Spending, elapsed time.Duration,
) (ledger.Budget, error) {
	guard := b.USD == 0
	b = b.WithDefaults()
	for _, f := range []struct {
		what string
		left *int64
		used int64
	}{
		{"calls", &b.Calls, used.Calls},
		{"tool calls", &b.ToolCalls, used.ToolCalls},
		{"input tokens", &b.InputTokens, used.InputTokens},
		{"output tokens", &b.OutputTokens, used.OutputTokens},
		{"tokens", &b.Tokens, used.InputTokens + used.OutputTokens},
	} {
		if f.used >= *f.left {
			return b, &ledger.BudgetError{
				What:   f.what,
				Limit:  float64(*f.left),
				Spent:  float64(f.used),
				Needed: 1,
			}
		}
		*f.left -= f.used
	}

	if elapsed >= b.Wall {
		return b, &ledger.BudgetError{
			What: "seconds", Limit: b.Wall.Seconds(), Spent: elapsed.Seconds(),
		}
	}
	b.Wall -= elapsed

	switch {
	case guard:
		b.USD = 0
	case used.USD >= b.USD:
		return b, &ledger.BudgetError{What: "US dollars", Limit: b.USD, Spent: used.USD}
	default:
		b.USD -= used.USD
	}

	return b, nil
}

// Add returns the sum of two spendings.
func Add(a, b ledger.Spending) ledger.Spending {
	return ledger.Spending{
		Calls:        a.Calls + b.Calls,
		InputTokens:  a.InputTokens + b.InputTokens,
		OutputTokens: a.OutputTokens + b.OutputTokens,
		USD:          a.USD + b.USD,
		Unpriced:     a.Unpriced + b.Unpriced,
		ToolCalls:    a.ToolCalls + b.ToolCalls,
	}
}

// subtract returns the difference of two spendings.
func subtract(a, b ledger.Spending) ledger.Spending {
	return ledger.Spending{
		Calls:        a.Calls - b.Calls,
		InputTokens:  a.InputTokens - b.InputTokens,
		OutputTokens: a.OutputTokens - b.OutputTokens,
		USD:          a.USD - b.USD,
		Unpriced:     a.Unpriced - b.Unpriced,
		ToolCalls:    a.ToolCalls - b.ToolCalls,
	}
}
