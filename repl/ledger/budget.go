package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/quantity"
)

// Budget bounds a whole run, including its sub-calls at every depth. A zero field means its
// default, never "no limit". A run with a negative field fails before it spends anything.
type Budget struct {
	// Calls bounds model calls, by loops and snippets alike.
	Calls int64 `json:"calls"`
	// ToolCalls bounds tool calls by snippets. Calls of timed tools are not counted.
	ToolCalls int64 `json:"tool_calls"`
	// InputTokens and OutputTokens bound each kind of token, and Tokens bounds their sum.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Tokens       int64 `json:"tokens"`
	// USD bounds the cost in US dollars. Models without a price are treated as free, unless USD is
	// set: then the run fails before any work.
	USD float64 `json:"usd"`
	// Wall bounds the time since the run began.
	Wall time.Duration `json:"wall_ns"`
}

// defaults are the values of a zero Budget. USD guards against accidents.
var defaults = Budget{
	Calls: 2_000, ToolCalls: 1_000,
	InputTokens: 50_000_000, OutputTokens: 5_000_000, Tokens: 55_000_000,
	USD:  25,
	Wall: time.Hour,
}

// WithDefaults returns the budget with every zero field replaced by its default: 2,000
// model calls, 1,000 tool calls, 50 million input and 5 million output tokens, 55 million
// together, 25 US dollars, one hour.
func (b Budget) WithDefaults() Budget {
	d := defaults
	for _, f := range []struct{ value, standard *int64 }{
		{&b.Calls, &d.Calls},
		{&b.ToolCalls, &d.ToolCalls},
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

// Spending holds the amounts that a call needs or that a run has used.
type Spending struct {
	Calls        int64   `json:"calls"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
	// Unpriced counts the calls of unknown cost, which USD does not include.
	Unpriced int64 `json:"unpriced_calls,omitempty"`
	// ToolCalls counts tool calls by snippets.
	ToolCalls int64 `json:"tool_calls,omitempty"`
}

// String formats the spending in one line: "3 calls, 1,200 tokens in and 50 out, $0.0100". Tool
// calls, if any, come last.
func (s Spending) String() string {
	text := fmt.Sprintf("%s, %s tokens in and %s out, %s",
		quantity.Plural(s.Calls, "call", ""), quantity.Comma(s.InputTokens),
		quantity.Comma(s.OutputTokens), s.cost())
	if s.ToolCalls > 0 {
		text += ", " + quantity.Plural(s.ToolCalls, "tool call", "")
	}
	return text
}

// cost formats the cost, or notes that it is unknown.
func (s Spending) cost() string {
	switch {
	case s.Unpriced == 0:
		return fmt.Sprintf("$%.4f", s.USD)
	case s.USD == 0:
		return "price unknown"
	}
	return fmt.Sprintf("$%.4f and %s whose price is unknown",
		s.USD, quantity.Plural(s.Unpriced, "call", ""))
}

// BudgetError reports that a call or a run does not fit into the rest of a budget.
type BudgetError struct {
	// What names the part of the budget: "calls", "tool calls", "input tokens", "output
	// tokens", "tokens", "US dollars" or "seconds".
	What string
	// Limit is the budget, Spent the part already used or reserved, and Needed the additional
	// amount, all in the unit of What.
	Limit, Spent, Needed float64
}

// Error names the part of the budget and the three numbers.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the run's budget of %s %s is used up (%s used, %s more needed)",
		formatNumber(e.Limit), e.What, formatNumber(e.Spent), formatNumber(e.Needed))
}

// formatNumber formats a number with up to four decimals, without trailing zeros.
func formatNumber(f float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.4f", f), "0"), ".")
}
