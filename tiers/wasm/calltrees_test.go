package wasm_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

//go:embed testdata/calltrees.py
var callTrees string

// treeLimits end a tree by its fuel in a fraction of a second. Only a tree that uses almost no fuel
// lasts until the wall limit.
var treeLimits = tiers.Limits{Fuel: 4_000_000, Wall: time.Minute}

// runTree runs a tree of calls and reports how it ended.
func runTree(t *testing.T, tier tiers.Tier, levels []byte) tiers.Result {
	t.Helper()
	s := openSandbox(t, tier, tiers.Config{Limits: treeLimits})
	defer s.Close()
	r, err := s.Run(t.Context(), tiers.Job{
		Source: callTrees + fmt.Sprintf("\ngrow(bytes.fromhex('%x'))()\n", levels),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTreesOfCallsPayFuel checks that the fuel limit ends a tree of 2^40 calls, which is
// practically endless, for each kind of level.
func TestTreesOfCallsPayFuel(t *testing.T) {
	skip.Short(t, "both engines use up the fuel of each kind of tree")
	for _, engine := range testEngines(t) {
		t.Run(engine, func(t *testing.T) {
			tier := warmTierOf(t, engine)
			for kind := range countKinds(t, tier) {
				levels := bytes.Repeat([]byte{byte(kind)}, 40)
				if r := runTree(t, tier, levels); r.Limit != tiers.LimitFuel {
					t.Errorf("levels of kind %d: %s %s %+v", kind, r.Status, r.Limit, r.Exception)
				}
			}
		})
	}
}

// testEngines returns the engine of the other tests, and wazero.
func testEngines(t *testing.T) []string {
	t.Helper()
	if testEngine != "" {
		return []string{testEngine}
	}
	if testing.Short() {
		return []string{"auto"}
	}
	return []string{"auto", "wazero"}
}

func countKinds(t *testing.T, tier tiers.Tier) int {
	t.Helper()
	s := openSandbox(t, tier, tiers.Config{})
	defer s.Close()
	r, err := s.Run(t.Context(), tiers.Job{Source: callTrees + "\nprint(len(LEVELS))\n"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(r.Stdout))
	if err != nil || n < 30 {
		t.Fatalf("%d kinds, %v, %+v", n, err, r.Exception)
	}
	return n
}

// FuzzCallTrees looks for calls that take time without using fuel. Each byte is a level of a tree.
func FuzzCallTrees(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21})
	f.Add([]byte{33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12})
	tier := warmTier(f)
	f.Fuzz(func(t *testing.T, levels []byte) {
		if r := runTree(t, tier, levels[:min(len(levels), 60)]); r.Limit == tiers.LimitWall {
			t.Errorf("%s %s, with %d fuel", r.Status, r.Limit, r.Usage.Fuel)
		}
	})
}
