package wasm_test

import (
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// TestCopiesCostFuelByLength compares the fuel of one copy with that of nine. Apart from a few
// hundred loop iterations, the rest of the snippets is equal.
func TestCopiesCostFuelByLength(t *testing.T) {
	const size, times, each = 32 << 20, 8, 32 << 20 / 64
	for name, source := range map[string]string{
		"a copy":       "for _ in range(n): b[:] = a",
		"a copy, back": "for _ in range(n): b[4096:] = memoryview(b)[:-4096]",
		"a fill":       "for _ in range(n): b'x' * (32 << 20)",
	} {
		t.Run(name, func(t *testing.T) {
			s := openSandbox(t, warmTier(t), tiers.Config{})
			runOK(t, s, "a, b = bytes(32 << 20), bytearray(32 << 20)")

			var used [2]uint64
			for i, n := range []string{"n = 1\n", "n = 9\n"} {
				r, err := s.Run(t.Context(), tiers.Job{Source: n + source})
				if err != nil || r.Status != tiers.StatusOK {
					t.Fatalf("%v %+v", err, r)
				}
				used[i] = r.Usage.Fuel
			}
			if got := used[1] - used[0]; got < times*each*99/100 {
				t.Errorf("%d copies of %d bytes cost %d fuel, want %d", times, size, got, times*each)
			}
		})
	}
}
