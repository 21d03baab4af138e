package python_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rlmhq/rlm/internal/plan/analyser/python"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// The analyser reports a snippet's imports, needs and calls. It does not run the snippet.
func Example() {
	tier := wasm.New(wasm.Options{CacheDir: testcache.Dir()})
	analyser := python.New(tier)

	const source = `import numpy as np
try:
    import polars
except ImportError:
    polars = None
rows = np.loadtxt("rows.csv")
print(llm_query(f"What stands out? {rows.mean()}"))`
	verdict, err := analyser.Analyse(context.Background(), source)
	if err != nil {
		log.Fatal(err)
	}
	for _, module := range verdict.Needs.Imports {
		fmt.Println("imports", module.Module, "guarded:", module.Guarded)
	}
	for _, need := range verdict.Needs.Features {
		fmt.Printf("needs %s: %s in line %d\n", need.Feature, need.Why, need.Line)
	}
	fmt.Println("calls", verdict.Needs.Calls)

	if err := errors.Join(analyser.Close(), tier.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// imports numpy guarded: false
	// imports polars guarded: true
	// needs files: numpy.loadtxt in line 6
	// calls [llm_query]
}
