package answers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// unasked is a registry whose models are never called.
type unasked struct{}

func (unasked) Resolve(name string) (llm.Model, error) {
	return llm.Model{
		Name: name, ID: name, Facts: llm.Facts{Price: &llm.Price{Input: 1, Output: 1}},
	}, nil
}

// TestTooManyAreForeseenAtOnce checks that too many queries are refused without reading their
// prompts, and that reading prompts ends with its context.
func TestTooManyAreForeseenAtOnce(t *testing.T) {
	caller, err := calls.NewCaller(
		calls.Caller{Models: unasked{}, Gate: calls.NewGate(4)}, ledger.Budget{Calls: 100}, nil,
		false,
	)
	if err != nil {
		t.Fatal(err)
	}
	a := &answers.Answers{Caller: caller, Model: "m"}
	bad := make([]answers.Query, 101)
	var budget *ledger.BudgetError
	if err := a.Foresee(t.Context(), bad); !errors.As(err, &budget) || budget.What != "calls" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Foresee(ctx, bad[:50]); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
