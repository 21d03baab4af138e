package golang_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlmhq/rlm/internal/plan/analyser/golang"
)

// The analyser reports a snippet's needs and the names that the snippet uses. It does not run the
// snippet.
func ExampleAnalyser_Analyse() {
	const source = `import "os"
data, err := os.ReadFile(name)
report := Summarise(data)`

	verdict, err := golang.Analyser{}.Analyse(context.Background(), source)
	if err != nil {
		log.Fatal(err)
	}
	for _, need := range verdict.Needs.Features {
		fmt.Printf("needs %s: %s in line %d\n", need.Feature, need.Why, need.Line)
	}
	fmt.Println("reads", verdict.Needs.Reads)
	fmt.Println("writes", verdict.Needs.Writes)
	fmt.Println("calls", verdict.Needs.Calls)
	// Output:
	// needs files: os.ReadFile in line 2
	// reads [name Summarise]
	// writes [data err report]
	// calls [Summarise]
}
