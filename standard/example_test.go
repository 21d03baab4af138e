package standard_test

import (
	"fmt"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/standard"
)

func Example() {
	engine, err := rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	for _, tier := range engine.Tiers() {
		fmt.Println(tier.Info().Name)
	}

	// Output:
	// interp
	// wasm
	// docker
	// local
}
