package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Budget is what a whole run may use, its sub-calls at every depth included. A
// zero field means its default, never "no limit"; so does a negative one, which
// [Budget.Validate] refuses.
type Budget struct {
	// Calls bounds model calls, those of loops and of snippets alike.
	Calls int64 `json:"calls"`
	// InputTokens and OutputTokens bound each kind, Tokens their sum.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Tokens       int64 `json:"tokens"`
	// USD bounds cost in US dollars. Models without a price count as free unless
	// it is set: then they are refused before any work.
	USD float64 `json:"usd"`
	// Wall bounds time from the ledger's start.
	Wall time.Duration `json:"wall_ns"`
}

// DefaultBudget is what a zero Budget means. Its USD is a guard against
// accidents.
func DefaultBudget() Budget {
	return Budget{
		Calls: 2_000, InputTokens: 50_000_000, OutputTokens: 5_000_000, Tokens: 55_000_000,
		USD: 25, Wall: time.Hour,
	}
}

// WithDefaults returns b with every zero field replaced by its default.
func (b Budget) WithDefaults() Budget {
	d := DefaultBudget()
	for _, f := range []struct{ value, standard *int64 }{
		{&b.Calls, &d.Calls},
		{&b.InputTokens, &d.InputTokens},
		{&b.OutputTokens, &d.OutputTokens},
		{&b.Tokens, &d.Tokens},
	} {
		if *f.value == 0 {
			*f.value = *f.standard
		}
	}

	if b.USD == 0 {
		b.USD = d.USD
	}
	if b.Wall == 0 {
		b.Wall = d.Wall
	}

	return b
}

// Validate reports the first field that cannot be kept.
func (b Budget) Validate() error {
	switch {
	case b.Calls < 0 || b.InputTokens < 0 || b.OutputTokens < 0 || b.Tokens < 0 || b.Wall < 0:
		return errors.New("a budget is negative: give a positive value, or 0 for the default")
	case !(b.USD >= 0) || b.USD > 1e9:
		return fmt.Errorf(
			"a budget of %v US dollars makes no sense: give a positive number, or 0 for the default",
			b.USD,
		)
	}

	return nil
}

// Subtract is what is left of b after a run that used so much of it: for several runs, one
// after the other, that share a budget. What was zero is its default, but for USD, which
// stays a guard against accidents. The error is a [*BudgetError] if a field is used up.
func (b Budget) Subtract(used Spending, elapsed time.Duration) (Budget, error) {
	guard := b.USD == 0
	b = b.WithDefaults()
	for _, f := range []struct {
		what string
		left *int64
		used int64
	}{
		{"calls", &b.Calls, used.Calls},
		{"input tokens", &b.InputTokens, used.InputTokens},
		{"output tokens", &b.OutputTokens, used.OutputTokens},
		{"tokens", &b.Tokens, used.InputTokens + used.OutputTokens},
	} {
		if f.used >= *f.left {
			return b, &BudgetError{
				What:   f.what,
				Limit:  float64(*f.left),
				Spent:  float64(f.used),
				Needed: 1,
			}
		}

		*f.left -= f.used
	}

	if elapsed >= b.Wall {
		return b, &BudgetError{
			What:   "seconds",
			Limit:  b.Wall.Seconds(),
			Spent:  elapsed.Seconds(),
			Needed: 0,
		}
	}

	b.Wall -= elapsed
	switch {
	case guard:
		b.USD = 0
	case used.USD >= b.USD:
		return b, &BudgetError{What: "US dollars", Limit: b.USD, Spent: used.USD, Needed: 0}
	default:
		b.USD -= used.USD
	}

	return b, nil
}

// Spending is what a call needs, or what was used.
type Spending struct {
	Calls        int64   `json:"calls"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
}

// Plus is the sum of two.
func (s Spending) Plus(o Spending) Spending {
	return Spending{
		s.Calls + o.Calls,
		s.InputTokens + o.InputTokens,
		s.OutputTokens + o.OutputTokens,
		s.USD + o.USD,
	}
}

// Minus is the difference of two.
func (s Spending) Minus(o Spending) Spending {
	return Spending{
		s.Calls - o.Calls,
		s.InputTokens - o.InputTokens,
		s.OutputTokens - o.OutputTokens,
		s.USD - o.USD,
	}
}

// String is the spending for people.
func (s Spending) String() string {
	return fmt.Sprintf(
		"%d calls, %d+%d tokens, $%.4f", s.Calls, s.InputTokens, s.OutputTokens, s.USD,
	)
}

// BudgetError says that something does not fit into what is left of a budget.
type BudgetError struct {
	// What is the field of [Budget]: "calls", "input tokens", "output tokens",
	// "tokens", "usd", "wall".
	What string
	// Limit is the budget, Spent what is used, Needed what was asked for, in the
	// unit of the field (seconds for wall).
	Limit, Spent, Needed float64
}

// Error says what is used up.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the run's budget of %s %s is used up (%s used, %s more needed)",
		number(e.Limit), e.What, number(e.Spent), number(e.Needed))
}

func number(f float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.4f", f), "0"), ".")
}
