package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rlmhq/rlm/internal/plan/analyser/python"
	"github.com/rlmhq/rlm/internal/plan/runner"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// A runner runs each snippet in the cheapest tier that can run it, or explains why no tier can.
func Example() {
	ctx := context.Background()
	tier := wasm.New(wasm.Options{CacheDir: testcache.Dir()})
	analyser := python.New(tier)
	session, err := runner.New(runner.Config{
		Tiers:     []tiers.Tier{tier},
		Analysers: map[tiers.Language]runner.Analyser{tiers.Python: analyser},
		Policy:    router.Policy{MinIsolation: tiers.IsolationWasm},
	})
	if err != nil {
		log.Fatal(err)
	}

	for _, source := range []string{
		"squares = [n * n for n in range(5)]",
		"print(sum(squares))",
		"import subprocess\nsubprocess.run(['ls'])",
	} {
		result, err := session.Run(ctx, tiers.Job{Source: source})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s %s %q\n", result.Tier, result.Status, result.Stdout)
	}

	if err := errors.Join(session.Close(), analyser.Close(), tier.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// wasm ok ""
	// wasm ok "30\n"
	// no tier may run the snippet
	//   tier wasm: the snippet needs processes (subprocess.run, line 2)
}

// A plan shows where a snippet would run, and why. Nothing runs.
func ExampleRunner_Explain() {
	tier := wasm.New(wasm.Options{CacheDir: testcache.Dir(), Engine: "wazero"}) // available on every system
	analyser := python.New(tier)
	session, err := runner.New(runner.Config{
		Tiers:     []tiers.Tier{tier},
		Analysers: map[tiers.Language]runner.Analyser{tiers.Python: analyser},
	})
	if err != nil {
		log.Fatal(err)
	}

	plan, err := session.Explain(context.Background(), tiers.Job{
		Source: "import json\nfor n in range(10**8):\n    pass",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan.Text())

	if err := errors.Join(session.Close(), analyser.Close(), tier.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// language  python
	// snippet   imports json (line 1); computes about 1.5s natively (line 2)
	//
	// tier  order  cost     why
	// wasm  1      5.1005s  start 500µs, compute 5.1s
}
