//go:build linux && (amd64 || arm64)

package jail

import "testing"

// TestTheMemoryOfAJailIsResized raises a limit so that a guest can use more memory, and then lowers
// the limit again. TestAsOrdinaryUser runs it without a cgroup.
func TestTheMemoryOfAJailIsResized(t *testing.T) {
	requireFull(t)
	h := startHostile(t, Config{Limits: Limits{Memory: 64 << 20, AddressSpace: 8 << 30}})
	if err := h.SetMemory(t.Context(), 400<<20); err != nil {
		t.Fatal(err)
	}
	h.expect("flood 150", "done")
	if used := h.Memory(); used <= 0 || used > 400<<20 {
		t.Errorf("the jail uses %d bytes", used)
	}
	if h.SetMemory(t.Context(), 0) == nil {
		t.Error("a jail may have 0 bytes")
	}

	if err := h.SetMemory(t.Context(), 300<<20); err != nil {
		t.Fatal(err)
	}
	if got := h.try("flood 2000"); got != "gone" {
		t.Errorf("the flood went %s", got)
	}
	if e := wait(t, h.Process); !e.OOM {
		t.Errorf("%+v", e)
	}
	if used := h.Memory(); used != 0 {
		t.Errorf("a jail that has ended uses %d bytes", used)
	}
}
