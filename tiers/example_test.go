package tiers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/tiers"
)

// A host answers the calls that snippets make. Arguments and answers are JSON.
func ExampleHostFunc() {
	host := tiers.HostFunc(func(_ context.Context, call tiers.Call) (tiers.Value, error) {
		var city string
		if err := json.Unmarshal(call.Args[0], &city); err != nil {
			return nil, err
		}
		return json.Marshal(call.Function + " of " + city + ": 12 °C")
	})

	answer, err := host.Call(context.Background(), tiers.Call{
		Function: "weather",
		Args:     []tiers.Value{tiers.Value(`"Oslo"`)},
	})
	fmt.Println(string(answer), err)
	// Output: "weather of Oslo: 12 °C" <nil>
}

// A caller distinguishes the three endings of a run.
func Example_endings() {
	report := func(result tiers.Result, err error) {
		var rejected *tiers.RejectedError
		switch {
		case errors.As(err, &rejected):
			fmt.Println("try another tier, this one lacks", rejected.Missing)
		case err != nil:
			fmt.Println("the tier broke:", err)
		default:
			fmt.Println("the snippet ended:", result.Status)
		}
	}

	report(tiers.Result{Status: tiers.StatusRaised}, nil)
	report(tiers.Result{}, &tiers.RejectedError{Tier: "wasm", Missing: "numpy"})
	report(tiers.Result{}, &tiers.BrokenError{Tier: "docker", Effects: tiers.EffectsRan, Err: errors.New("EOF")})
	// Output:
	// the snippet ended: raised
	// try another tier, this one lacks numpy
	// the tier broke: tier docker broke (snippet ran): EOF
}
