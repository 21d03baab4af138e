//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// sessionLimits are low enough for programs to reach the limits of fuel and memory.
var sessionLimits = tiers.Limits{Memory: 96 << 20, Fuel: 3_000_000}

// runPython runs random programs in both engines, in sessions of three snippets, until the time
// is up. Output, ending, exception, fuel and memory must agree.
func runPython(seed uint64, minutes float64) error {
	ctx := context.Background()
	engine, oracle := wasm.New(wasm.Options{Engine: "aot"}), wasm.New(wasm.Options{Engine: "wazero"})
	defer engine.Close()
	defer oracle.Close()
	if err := errors.Join(engine.Warm(ctx), oracle.Warm(ctx)); err != nil {
		return err
	}

	ends, snippets := map[string]int{}, 0
	end := time.Now().Add(time.Duration(minutes * float64(time.Minute)))
	for ; time.Now().Before(end); seed++ {
		sources := randomSession(rand.New(rand.NewPCG(seed, 0)))
		ours, err := runSession(ctx, engine, sources)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		theirs, err := runSession(ctx, oracle, sources)
		if err != nil {
			return fmt.Errorf("seed %d, in wazero: %w", seed, err)
		}

		for i := range max(len(ours), len(theirs)) {
			if len(ours) != len(theirs) || ours[i] != theirs[i] {
				return fmt.Errorf("seed %d, snippet %d:\n%s\n%+v\nin wazero: %+v", seed, i, sources[i], ours, theirs)
			}
			ends[ours[i].end]++
			snippets++
		}
	}

	fmt.Printf("%d snippets, up to seed %d", snippets, seed)
	for _, name := range slices.Sorted(maps.Keys(ends)) {
		fmt.Printf(", %d %s", ends[name], name)
	}
	fmt.Println()
	if snippets == 0 {
		return errors.New("no snippet ran")
	}
	return nil
}

// ending is the result of a snippet.
type ending struct {
	end, output, exception string
	fuel                   uint64
	memory                 int64
}

// runSession runs snippets until one of them ends the sandbox.
func runSession(ctx context.Context, tier tiers.Tier, sources []string) ([]ending, error) {
	s, err := tier.Open(ctx, tiers.Config{Deterministic: true, Limits: sessionLimits})
	if err != nil {
		return nil, err
	}
	defer s.Close()

	var all []ending
	for _, source := range sources {
		r, err := s.Run(ctx, tiers.Job{Source: source})
		if err != nil {
			return nil, err
		}
		e := ending{
			end: fmt.Sprint(r.Status, " ", r.Limit), output: r.Stdout + r.Stderr,
			fuel: r.Usage.Fuel, memory: r.Usage.PeakMemory,
		}
		if x := r.Exception; x != nil {
			e.exception = x.Type + ": " + x.Message + "\n" + x.Traceback
		}
		if all = append(all, e); r.Status != tiers.StatusOK && r.Status != tiers.StatusRaised {
			break // the sandbox may have ended
		}
	}

	return all, nil
}
