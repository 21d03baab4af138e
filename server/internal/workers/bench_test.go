//go:build linux && (amd64 || arm64)

package workers

import (
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
)

// BenchmarkSnippet compares the time of a snippet in a worker with that in this process.
func BenchmarkSnippet(b *testing.B) {
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close() }) // after the sandboxes
	for name, tier := range map[string]tiers.Tier{
		"worker": openTier(b, Options{}), "process": findTier(b, engine, "wasm"),
	} {
		box := open(b, tier, tiers.Config{})
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mustPrint(b, box, "print(1 + 1)", "2\n")
			}
		})
		b.Run(name+", first", func(b *testing.B) {
			for b.Loop() {
				box, err := tier.Open(b.Context(), tiers.Config{})
				if err != nil {
					b.Fatal(err)
				}
				mustPrint(b, box, "print(1 + 1)", "2\n")
				if err := box.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
