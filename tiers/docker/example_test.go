package docker_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

// A program probes the tier before offering it. Without a daemon the tier is not usable.
func Example() {
	tier := docker.New(docker.Options{Host: "unix:///no/such/docker.sock"})
	defer func() { _ = tier.Close() }() // nothing was started

	err := tier.Probe(context.Background())
	fmt.Println("tier", tier.Info().Name, "is usable:", err == nil)
	// Output: tier docker is usable: false
}

// A session runs in a hardened container and keeps its variables.
func ExampleTier_Open() {
	ctx := context.Background()
	tier := docker.New(docker.Options{})
	sandbox, err := tier.Open(ctx, tiers.Config{})
	if err != nil {
		log.Fatal(err)
	}

	for _, source := range []string{"import numpy as np", "print(np.arange(10).sum())"} {
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
