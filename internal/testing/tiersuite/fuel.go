package tiersuite

import (
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

const work = `t = 0
for i in range(20000):
    t += i * i % 7
print(t, sorted(str(i) for i in range(500))[:3], hash('text') != 0)`

// testFuel tests that work is measured repeatably, and bounded.
func (s *suite) testFuel(t *testing.T) {
	t.Run("is used", func(t *testing.T) {
		box := s.open(t, emptyConfig())
		small, large := box.mustRun(t, "sum(range(10))"), box.mustRun(t, "sum(range(1000000))")
		if small.Usage.Fuel == 0 || large.Usage.Fuel <= small.Usage.Fuel {
			t.Errorf("fuel of a small sum %d, of a large one %d", small.Usage.Fuel, large.Usage.Fuel)
		}
	})

	t.Run("is repeatable", func(t *testing.T) {
		var used []uint64
		for range 3 {
			box := s.open(t, tiers.Config{Deterministic: true})
			used = append(used, box.mustRun(t, work).Usage.Fuel)
		}
		if used[0] != used[1] || used[1] != used[2] {
			t.Errorf("the same snippet used %v", used)
		}
	})

	s.testExcesses(t, tiers.Limits{Fuel: 2_000_000}, []tiers.Limit{tiers.LimitFuel}, []excess{
		{"bounds a loop", "while True: pass"},
		{"bounds C code", "sum(range(10 ** 12))"},
		{"bounds a stubborn loop", "while True:\n    try:\n        while True: pass\n    except: pass"},
	}, nil)
	t.Run("is the snippet's own", func(t *testing.T) {
		box := s.open(t, tiers.Config{Limits: tiers.Limits{Fuel: 2_000_000}})
		for range 20 {
			box.mustRun(t, "sum(range(100000))")
		}
	})
}
