package router_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// A plan shows where a snippet would run, and why. It depends only on its arguments.
func ExamplePolicy_Plan() {
	candidates := []router.Candidate{
		{Info: tiers.Info{
			Name: "wasm", Languages: []tiers.Language{tiers.Python}, Isolation: tiers.IsolationWasm,
			Features: []tiers.Feature{tiers.FeatureDynamic}, Modules: tiers.ModuleSet("json"),
			Cost: tiers.Cost{Start: time.Millisecond},
		}},
		{Info: tiers.Info{
			Name: "docker", Languages: []tiers.Language{tiers.Python}, Isolation: tiers.IsolationContainer,
			Features: []tiers.Feature{tiers.FeatureDynamic}, Modules: tiers.ModuleSet("json", "numpy"),
			Cost: tiers.Cost{Start: time.Second},
		}},
	}
	snippet := router.Verdict{Needs: &router.Needs{
		Imports: []router.Import{{Module: "json", Line: 1}, {Module: "numpy", Line: 2}},
	}}
	first := router.Standing{Language: tiers.Python}

	plan := router.Policy{}.Plan(snippet, candidates, first)
	fmt.Println(plan.Text())

	candidates[1].Unusable = errors.New("there is no daemon")
	plan = router.Policy{Modules: []string{"json"}}.Plan(snippet, candidates, first)
	fmt.Println(plan.Err())
	// Output:
	// language  python
	// snippet   imports json (line 1); imports numpy (line 2)
	//
	// tier    order  cost  why
	// docker  1      1s    start 1s
	// wasm    -      -     lacks the module numpy (line 2)
	//
	// no tier may run the snippet
	//   tier wasm: policy does not allow the module numpy (line 2)
	//   tier docker: policy does not allow the module numpy (line 2)
}
