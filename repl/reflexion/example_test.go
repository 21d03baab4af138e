package reflexion_test

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/repl/reflexion"
)

// one is a registry that returns one provider under every name.
type one struct{ llm.Provider }

// Resolve implements ledger.Models.
func (o one) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: o.Provider}, nil
}

// The judge finds a fault in the first draft and none in its revision.
func ExampleRun() {
	draft, revision := "Run the migrations by hand.", "Run `make migrate`."
	fault := `{"issues": [{"type": "incorrect", "description": "There is a target for it.", ` +
		`"severity": "major"}], "confidence": 0.9}`
	none := `{"issues": [], "confidence": 0.9}`
	model, err := scripted.New(
		scripted.Rule{When: scripted.When{Purpose: "draft"}, Reply: &draft},
		scripted.Rule{When: scripted.When{Purpose: "revision"}, Reply: &revision},
		scripted.Rule{When: scripted.When{Purpose: "critique", Any: "by hand"}, Reply: &fault},
		scripted.Rule{When: scripted.When{Purpose: "critique"}, Reply: &none},
	)
	if err != nil {
		fmt.Println(err)
		return
	}

	result, err := reflexion.Run(context.Background(), reflexion.Config{
		Task: "How do I migrate the database?",
		Memory: reflexion.Memory{
			Facts: []reflexion.Fact{{Content: "make migrate runs the migrations.", Confidence: 1}},
		},
		Models: one{model},
		Model:  "any",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range result.Iterations {
		fmt.Println(i.Number, i.Draft, "-", i.Critique)
	}
	fmt.Println(result.Status)
	// Output:
	// 1 Run the migrations by hand. - does not pass: 1 major issue
	// 2 Run `make migrate`. - passes: no issue
	// passed
}
