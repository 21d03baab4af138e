//go:build unix

package local_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
)

// A program probes the tier before offering it. Without Python the tier is not usable.
func Example() {
	tier := local.New(local.Options{Python: "/no/such/python3"})
	defer func() { _ = tier.Close() }() // nothing was started

	err := tier.Probe(context.Background())
	fmt.Println("tier", tier.Info().Name, "is usable:", err == nil)
	// Output: tier local is usable: false
}

// A session runs the host's Python in a jail and keeps its variables.
func ExampleTier_Open() {
	ctx := context.Background()
	tier := local.New(local.Options{Python: "/usr/bin/python3"})
	sandbox, err := tier.Open(ctx, tiers.Config{})
	if err != nil {
		log.Fatal(err)
	}

	for _, source := range []string{"total = sum(range(10))", "print(total)"} {
		result, err := sandbox.Run(ctx, tiers.Job{Source: source})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(result.Stdout)
	}

	if err := errors.Join(sandbox.Close(), tier.Close()); err != nil {
		log.Fatal(err)
	}
}
