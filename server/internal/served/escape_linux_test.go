//go:build amd64 || arm64

package served

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/escapes"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/server/internal/workers"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/tiers"
)

// TestEscapeThroughTheAPI attacks tier wasm as a client of a server whose sandboxes are in workers.
// Each case opens sessions over HTTP and runs its snippets there. Cases that call functions of
// their host use a WebSocket. The verdicts must be the same as without a server.
//
// It leaves out the class contexts, because a client cannot name files of the server. It runs every
// fifth of the other cases; the tier's own test runs all of them.
func TestEscapeThroughTheAPI(t *testing.T) {
	skip.Short(t, "it runs hundreds of attacks")
	skip.UnderRace(t)
	s := start(t, inWorkers(t))
	way := &apiTier{served: s}
	for i := range 4 {
		way.keys = append(way.keys, s.newKey(fmt.Sprint("tenant-", i)))
	}
	for _, tier := range s.engine.Tiers() {
		if tier.Info().Name == rlm.TierWasm {
			way.Tier = tier
		}
	}

	for name, socket := range map[string]bool{"HTTP": false, "WebSocket": true} {
		t.Run(name, func(t *testing.T) {
			way.socket = socket
			n := 0
			escapes.RunThrough(t, way, func(c escapes.Case) bool {
				if c.Class == "contexts" || strings.Contains(c.Source, "ask") != socket {
					return false
				}
				n++
				return n%5 == 1
			})
		})
	}
}

// inWorkers returns the options of an engine whose tier wasm runs in workers, as in rlm serve.
func inWorkers(t *testing.T) rlm.Options {
	t.Helper()
	skip.WithoutJail(t)
	return rlm.Options{Tiers: func(wasm tiers.Tier) ([]tiers.Tier, error) {
		inWorkers, err := workers.Start(t.Context(), wasm, workers.Options{AllowSampled: true})
		if err != nil {
			return nil, err
		}
		return standard.Tiers(standard.Options{})(inWorkers)
	}}
}
