//go:build linux && (amd64 || arm64)

package aot

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/rlmhq/rlm/internal/machine/mapbudget"
)

// newArena returns the stacks of a process that may have maps memory maps.
func newArena(t *testing.T, maps, calls int) *arena {
	t.Helper()
	a := &arena{budget: mapbudget.New(maps), mostCalls: calls}
	t.Cleanup(func() {
		for _, b := range a.blocks {
			if err := b.unmap(a.budget); err != nil {
				t.Error(err)
			}
		}
		if taken := a.budget.Taken(); taken != 0 {
			t.Errorf("%d memory maps count at the end", taken)
		}
	})
	return a
}

// take reserves a stack for a call, and returns it.
func (a *arena) take(t *testing.T) *stack {
	t.Helper()
	if err := a.reserve(true); err != nil {
		t.Fatal(err)
	}
	s, err := a.get(unsafe.Pointer(a))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// accesses returns the access rights of a block's memory maps, such as "rw-p".
func (b *block) accesses(t *testing.T) (found []string) {
	t.Helper()
	file, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	base := uintptr(unsafe.Pointer(unsafe.SliceData(b.mapped)))
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var start, end uintptr
		var access string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &start, &end, &access); err != nil {
			t.Fatal(err)
		}
		if end > base && start < base+uintptr(len(b.mapped)) {
			found = append(found, access)
		}
	}
	return found
}

func TestAStackTakesTwoMemoryMaps(t *testing.T) {
	const many = 3*blockStacks + 5
	a := newArena(t, 10_000, many)
	seen := map[uintptr]bool{}
	for range many {
		s := a.take(t)
		start := uintptr(s.at(0))
		if start%stackSize != 0 || seen[start] {
			t.Fatalf("a stack begins at %x", start)
		}
		seen[start] = true
		if *(*uintptr)(s.at(0)) != uintptr(unsafe.Pointer(a)) {
			t.Error("the lowest word is not the context")
		}
		s.region[stackSize-1], s.region[stackGuard] = 1, 1
	}

	for i, b := range a.blocks {
		found := b.accesses(t)
		stacks := min(many-i*blockStacks, blockStacks)
		if most := stacks*stackMaps + 2; len(found) > most || len(found) > blockMaps+1 {
			t.Errorf("%d stacks take %d memory maps: %q", stacks, len(found), found)
		}
		if guards := strings.Count(strings.Join(found, " "), "---p"); guards < stacks {
			t.Errorf("%d stacks have %d guards", stacks, guards)
		}
	}
	if taken := a.budget.Taken(); taken != 4*blockMaps {
		t.Errorf("%d memory maps count for 4 blocks", taken)
	}
}

func TestStacksAreRefusedBeforeTheKernelRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		maps, calls int
		most        int // stacks
		says        string
	}{
		"at the limit of maps":  {2*blockMaps + 10, 1000, 2 * blockStacks, "vm.max_map_count is 76"},
		"at the limit of calls": {10_000, 7, 7, "all its sandboxes can have 7"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArena(t, c.maps, c.calls)
			for range c.most {
				a.take(t)
			}
			err := a.reserve(true)
			if !errors.Is(err, ErrNoStack) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("one more: %v", err)
			}
			if err := a.reserve(false); c.calls == 7 && err != nil {
				t.Errorf("a guest is refused as well: %v", err)
			}
		})
	}
}

// TestIdleStacksReturn uses a thousand stacks, and checks that few remain mapped.
func TestIdleStacksReturn(t *testing.T) {
	a := newArena(t, 10_000, 1000)
	var all []*stack
	for range 1000 {
		s := a.take(t)
		s.region[stackSize-1] = 1
		all = append(all, s)
	}
	for _, s := range all {
		a.put(s)
		a.release(true)
	}

	if most := (idleStacks + blockStacks) / blockStacks; len(a.blocks) > most {
		t.Errorf("%d blocks are left", len(a.blocks))
	}
	if a.reserved != 0 || a.calls != 0 || a.warm > idleStacks {
		t.Errorf("%d stacks are reserved, %d for calls, %d have memory", a.reserved, a.calls, a.warm)
	}
	for range idleStacks { // a stack retains nothing of its last user
		s := a.take(t)
		if s.region[stackSize-stackKept-1] != 0 || *(*uintptr)(s.at(0)) != uintptr(unsafe.Pointer(a)) {
			t.Error("a stack has the memory of another call")
		}
	}
}

// TestAWaitingCallKeepsLittleOfItsStack uses much of a stack, in steps of the largest frame, and
// checks which part remains after a return.
func TestAWaitingCallKeepsLittleOfItsStack(t *testing.T) {
	a := newArena(t, 1000, 10)
	s := a.take(t)
	goDeep := func(offset uintptr) {
		for at := uintptr(stackSize - 8); at > offset; at -= stackFrame {
			*(*uint64)(s.at(at)) = 1
		}
	}
	for name, c := range map[string]struct {
		deepest, now, kept uintptr // as depths
	}{
		"to the end":        {stackSize - stackGuard - stackMargin, 20 << 10, 20<<10 + stackWaiting},
		"far":               {8 << 20, 300 << 10, 300<<10 + stackWaiting},
		"and waits there":   {8 << 20, 8 << 20, 8 << 20},
		"not far":           {300 << 10, 250 << 10, 300 << 10},
		"deep, then deeper": {40 << 20, 30 << 20, 30<<20 + stackWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			s.drop(stackSize)
			goDeep(stackSize - c.deepest)
			s.shrink(uintptr(s.at(stackSize - c.now)))
			for at := uintptr(stackSize - 8); at > stackSize-c.deepest; at -= stackFrame {
				depth := stackSize - at
				isKept := s.wasIn(at&^(codePage-1), at&^(codePage-1)+codePage)
				if must := depth <= c.now; must && !isKept {
					t.Fatalf("the call has lost what lies %d KiB deep", depth>>10)
				}
				if may := depth <= c.kept+stackFrame; !may && isKept {
					t.Fatalf("the call keeps what lies %d KiB deep", depth>>10)
				}
			}
		})
	}
}

// TestStacksOfManyGoroutines gets and puts stacks in parallel.
func TestStacksOfManyGoroutines(t *testing.T) {
	a := newArena(t, 10_000, 1000)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for round := range 300 {
				if err := a.reserve(true); err != nil {
					t.Error(err)
					return
				}
				s, err := a.get(unsafe.Pointer(a))
				if err != nil {
					t.Error(err)
					return
				}
				mark := byte(i*31 + round)
				s.region[stackSize-1] = mark
				if s.region[stackSize-1] != mark {
					t.Error("two calls have one stack")
				}
				a.put(s)
				a.release(true)
			}
		})
	}

	group.Wait()
	if a.reserved != 0 {
		t.Errorf("%d stacks are reserved at the end", a.reserved)
	}
}

// TestACallWithoutAStackHasNotBegun checks that a guest is not called if the process has run out of
// stacks, and is usable later.
func TestACallWithoutAStackHasNotBegun(t *testing.T) {
	h := newHostile(t, loadHostile(t))
	a := stacks()
	most := a.mostCalls
	a.mostCalls = 0
	defer func() { a.mostCalls = most }()

	var nested error
	h.host = func(h *hostile, _ int, slots []uint64) {
		_, nested = h.run("again", slots[0]+1)
		slots[0] = 5
	}
	if n, err := h.run("again", 0); err != nil || n != 6 {
		t.Errorf("the guest's own call: %d, %v", n, err)
	}
	if !errors.Is(nested, ErrNoStack) || len(h.told) != 1 {
		t.Errorf("the nested call: %v, after %d calls of the host", nested, len(h.told))
	}
	a.mostCalls = most
	h.host = nil
	if n, err := h.run("again", 1); err != nil || n != 1002 {
		t.Errorf("the next call: %d, %v", n, err)
	}
}
