//go:build linux && (amd64 || arm64)

package aot

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strconv"
	"testing"
)

var accessName = regexp.MustCompile(`^[if](32|64)\.(load|store)(8|16|32)?(?:_[su])? \+(\d+)$`)

// TestEachAccessEndsAtTheMemory tries each load and store at the last allowed address, and at
// various addresses beyond it, with the initial and the final size of the memory.
func TestEachAccessEndsAtTheMemory(t *testing.T) {
	h := newHostile(t, loadHostile(t))
	accesses := 0
	for _, size := range []uint64{wasmPage, hostileLimit} {
		if _, err := h.run("grow", (size-h.Size())/wasmPage); err != nil || h.Size() != size {
			t.Fatalf("grow: %d bytes, %v", h.Size(), err)
		}
		for _, f := range h.program.header.Exports {
			if match := accessName.FindStringSubmatch(f.Name); match != nil {
				accesses++
				h.checkAccess(t, match, size)
			}
		}
	}

	if accesses != 2*3*23 {
		t.Errorf("%d accesses, want 14 loads and 9 stores, each with 3 offsets and 2 sizes", accesses)
	}
}

// checkAccess tries an access, given the parts of its name.
func (h *hostile) checkAccess(t *testing.T, name []string, size uint64) {
	t.Helper()
	bits := name[3]
	if bits == "" {
		bits = name[1]
	}
	n, _ := strconv.ParseUint(bits, 10, 64)
	width := n / 8
	offset, _ := strconv.ParseUint(name[4], 10, 64)
	want := bytes.Clone(h.memory)
	for address, isAllowed := range addressesNear(size, offset, width) {
		_, err := h.run(name[0], address, 0x0123456789abcdef)
		if isAllowed != (err == nil) || err != nil && !errors.Is(err, TrapError(1)) {
			t.Errorf("%s at %#x of %#x: %v", name[0], address, size, err)
		}
		if isAllowed && name[2] == "store" {
			at := address + offset
			copy(want[at:at+width], h.memory[at:])
		}
	}
	if !bytes.Equal(want, h.memory) {
		t.Errorf("%s changed other bytes", name[0])
	}
}

// addressesNear returns addresses around the end of a memory, including misaligned ones and those
// beyond 32 bits, and whether an access is allowed.
func addressesNear(size, offset, width uint64) map[uint64]bool {
	addresses := map[uint64]bool{}
	for _, end := range []uint64{0, size, 1 << 31, 1 << 32, size + 1<<32} {
		for delta := range 2*width + 2 {
			address := end - offset - width + delta - width
			if address <= math.MaxUint32 {
				addresses[address] = address+offset+width <= size
			}
		}
	}

	for _, address := range []uint64{0, math.MaxInt32, 1 << 31, math.MaxUint32} {
		addresses[address] = address+offset+width <= size
	}
	return addresses
}

// TestRangesEndAtTheMemory fills and copies up to the end of the memory and beyond. A range that
// does not fit must change nothing, and an empty one is allowed up to the end.
func TestRangesEndAtTheMemory(t *testing.T) {
	h := newHostile(t, loadHostile(t))
	const size = wasmPage
	lengths := []uint64{0, 1, 2, 15, 16, 17, 2048, 2049, size - 1, size, size + 1, 1 << 31, math.MaxUint32}
	places := []uint64{0, 1, size - 2049, size - 17, size - 1, size, size + 1, 1 << 31, math.MaxUint32}
	for _, n := range lengths {
		for _, to := range places {
			for _, from := range places {
				h.checkCopy(t, to, from, n)
			}
			h.checkFill(t, to, n)
		}
	}
}

func (h *hostile) checkCopy(t *testing.T, to, from, n uint64) {
	t.Helper()
	seen := h.memory[:min(2*wasmPage, len(h.memory))]
	want := bytes.Clone(seen)
	isAllowed := max(to, from)+n <= wasmPage
	if isAllowed {
		copy(want[to:to+n], h.memory[from:from+n])
	}
	_, err := h.run("copy", to, from, n)
	if isAllowed != (err == nil) || err != nil && !errors.Is(err, TrapError(1)) {
		t.Errorf("copy of %d from %#x to %#x: %v", n, from, to, err)
	}
	if !bytes.Equal(seen, want) {
		t.Fatalf("after a copy of %d from %#x to %#x, the memory is wrong", n, from, to)
	}
}

func (h *hostile) checkFill(t *testing.T, to, n uint64) {
	t.Helper()
	seen := h.memory[:min(2*wasmPage, len(h.memory))]
	want := bytes.Clone(seen)
	isAllowed := to+n <= wasmPage
	if isAllowed {
		for i := range want[to : to+n] {
			want[int(to)+i] = byte(to + n)
		}
	}
	_, err := h.run("fill", to, (to+n)&0xff, n)
	if isAllowed != (err == nil) || err != nil && !errors.Is(err, TrapError(1)) {
		t.Errorf("fill of %d at %#x: %v", n, to, err)
	}
	if !bytes.Equal(seen, want) {
		t.Fatalf("after a fill of %d at %#x, the memory is wrong", n, to)
	}
}

// TestIndirectCallsAreChecked checks calls of each entry of the table with each of three types:
// empty entries, entries of another type, and entries that do not exist.
func TestIndirectCallsAreChecked(t *testing.T) {
	h := newHostile(t, loadHostile(t))
	const none, mismatch = TrapError(6), TrapError(10)
	kinds := []string{
		2: "indirect", 3: "indirect wide", 4: "indirect none", 5: "indirect", 6: "indirect",
		7: "of two", 8: "of three",
	}
	indices := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255, 256, 1 << 28, 1 << 29, 1 << 31, math.MaxUint32}
	for _, function := range []string{"indirect", "indirect wide", "indirect none"} {
		t.Run(function, func(t *testing.T) {
			for _, index := range indices {
				var want error = none
				if index < uint64(len(kinds)) && kinds[index] != "" {
					if want = mismatch; kinds[index] == function {
						want = nil
					}
				}
				if _, err := h.run(function, index, 3); !errors.Is(err, want) {
					t.Errorf("%s of entry %d: %v, want %v", function, index, err, want)
				}
			}
		})
	}
}

// TestStackEnds recurses infinitely: directly, mutually, through the table, with and without work
// after the call, with a large frame, and with a host call at each level. The guest must trap, and
// the next call must have a complete stack.
func TestStackEnds(t *testing.T) {
	h := newHostile(t, loadHostile(t))
	h.host = func(h *hostile, _ int, _ []uint64) { h.told = h.told[:0] }
	for _, function := range []string{
		"endless", "endless tail", "endless even", "endless slot", "endless indirect", "endless wide",
		"endless host",
	} {
		t.Run(function, func(t *testing.T) {
			before := bytes.Clone(h.memory[32:])
			for range 2 {
				if _, err := h.run(function, 0, 0, 0); !errors.Is(err, TrapError(9)) {
					t.Fatalf("%s: %v", function, err)
				}
				if n, err := h.run("deep", 100_000); err != nil || n != 100_000 {
					t.Fatalf("a deep recursion after %s: %d, %v", function, n, err)
				}
			}
			if !bytes.Equal(before, h.memory[32:]) {
				t.Errorf("%s changed the memory", function)
			}
		})
	}
}
