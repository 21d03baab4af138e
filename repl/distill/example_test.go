package distill_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/repl/distill"
)

// Without a model, failures are clustered by the words of their errors.
func ExampleRun() {
	corpus, err := distill.Parse(strings.NewReader(`
{"id": "a", "status": "failed", "error": "timeout while calling search"}
{"id": "b", "status": "failed", "error": "timeout while calling search again"}
{"id": "c", "status": "ok"}
{"id": "d", "status": "failed", "error": "KeyError: 'total'"}
`), "auto")
	if err != nil {
		fmt.Println(err)
		return
	}

	result, err := distill.Run(context.Background(), corpus, distill.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(
		result.Failed, "of", result.Failed+result.Passed, "failed, clustered by", result.Method,
	)
	for _, c := range result.Clusters {
		fmt.Println(c.Count, c.Failures)
	}
	// Output:
	// 3 of 4 failed, clustered by keywords
	// 2 [a b]
	// 1 [d]
}
