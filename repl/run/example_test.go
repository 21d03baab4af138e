package run_test

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// one is a registry that returns one provider under every name.
type one struct{ llm.Provider }

// Resolve implements ledger.Models.
func (o one) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: o.Provider}, nil
}

// The model counts the large totals in an input that its prompt does not contain.
func ExampleRun() {
	reply := "```repl\nFINAL(sum(order[\"total\"] > 100 for order in context))\n```"
	model, err := scripted.New(scripted.Rule{Reply: &reply})
	if err != nil {
		fmt.Println(err)
		return
	}

	outcome, err := run.Run(context.Background(), run.Config{
		Question: "How many orders are above 100?",
		Inputs: []tiers.Input{
			{Name: "orders", Value: tiers.Value(`[{"total": 20}, {"total": 120}, {"total": 300}]`)},
		},
		Models: one{model},
		Model:  "any",
		Open:   shared.Opener(router.Policy{}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status, outcome.Text())
	// Output:
	// answered 2
}
