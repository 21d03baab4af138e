package wasm_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// A sandbox keeps its namespace from snippet to snippet.
func Example() {
	ctx := context.Background()
	tier := wasm.New(wasm.Options{CacheDir: testcache.Dir()})
	sandbox, err := tier.Open(ctx, tiers.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, source := range []string{"total = sum(range(10))", "print(total)", "total / 0"} {
		result, err := sandbox.Run(ctx, tiers.Job{Source: source})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(result.Status, " ", result.Stdout)
		if result.Exception != nil {
			fmt.Println(result.Exception.Type, result.Exception.Message)
		}
	}
	if err := errors.Join(sandbox.Close(), tier.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ok ok 45
	// raised ZeroDivisionError division by zero
}
