package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/looptest"
	"github.com/rlmhq/rlm/repl/workflow"
	"github.com/rlmhq/rlm/router"
)

var shared *rlm.Engine

func TestMain(m *testing.M) { looptest.Main(m, &shared, rlm.Options{}) }

// A loop with the strategy raise ends with an error that contains every attempt.
func ExampleNodeError() {
	file, err := workflow.Parse("user.yaml", []byte(`
nodes:
  - name: create_user
    uses: reflection.loop
    with:
      generator: {run: 'return {"name": ""}'}
      evaluator: {type: schema, schema: {type: object, properties: {name: {minLength: 1}}}}
      max_iterations: 2
      on_failure: raise
`))
	if err != nil {
		panic(err)
	}
	_, err = file.Run(context.Background(), workflow.Config{Open: shared.Opener(router.Policy{})},
		map[string]any{"request": "create user"})
	var failed *workflow.NodeError
	if errors.As(err, &failed) {
		fmt.Println(failed.Node, "failed:")
		for _, a := range failed.Attempts {
			fmt.Println(a.Iteration, a.Output, a.Score, a.Valid)
			for _, e := range a.Errors {
				fmt.Println(e.(map[string]any)["message"])
			}
		}
	}
	// Output:
	// create_user failed:
	// 1 map[name:] 0.5 false
	// must have at least 1 characters, has 0
	// 2 map[name:] 0.5 false
	// must have at least 1 characters, has 0
}
