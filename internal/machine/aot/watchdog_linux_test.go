//go:build linux && (amd64 || arm64)

package aot

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/stwait"
)

// treeParams returns the parameters for a tree of 2^depth calls without a loop.
func treeParams(depth uint64) []uint64 {
	return []uint64{
		depth, 0x0123456789abcdef, 77, math.Float64bits(1.5), uint64(math.Float32bits(2.5)),
		0xfedcba9876543210, 1 << 40, math.Float64bits(-0.75),
	}
}

// Preempt counts its calls, and runs the test's function.
func (h *hostile) Preempt() {
	h.preempts++
	if h.preempt != nil {
		h.preempt()
	}
}

// TestAPreemptedGuestGoesOn checks that preemption restores everything that a function keeps in
// registers. The guest leaves whenever a function begins, as if the watchdog checked continuously.
func TestAPreemptedGuestGoesOn(t *testing.T) {
	h, theirs := newHostile(t, loadHostile(t)), newOracle(t)
	for depth := uint64(1); h.preempts < 1000; depth = depth%18 + 1 {
		params := treeParams(depth)
		want, err := theirs.run("endless tree", params...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.runPoked("endless tree", params...)
		if err != nil || got != want {
			t.Fatalf("depth %d: %#x, %v; want %#x", depth, got, err, want)
		}
	}
}

// runPoked is like run, while another thread repeatedly takes away the guest's stack.
func (h *hostile) runPoked(name string, params ...uint64) (uint64, error) {
	limit := h.context(stackLimit)
	var isOver atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !isOver.Load() {
			atomic.StoreUint64(limit, math.MaxUint64)
		}
	})
	defer group.Wait()
	defer isOver.Store(true)
	return h.run(name, params...)
}

// errEnough ends a guest.
var errEnough = errors.New("it has computed enough")

// TestNoGuestKeepsGoWaiting runs a guest that would compute for a thousand years without consuming
// fuel. Each garbage collection waits until the guest leaves.
func TestNoGuestKeepsGoWaiting(t *testing.T) {
	h := newHostile(t, loadHostile(t))
	var isOver atomic.Bool
	h.preempt = func() {
		if isOver.Load() {
			panic(errEnough)
		}
	}

	ended := make(chan error)
	go func() {
		_, err := h.run("endless tree", treeParams(63)...)
		ended <- err
	}()
	for range 20 {
		runtime.GC()
	}
	isOver.Store(true)
	if err := <-ended; !errors.Is(err, errEnough) || h.preempts == 0 {
		t.Errorf("it ended with %v, after %d preempts", err, h.preempts)
	}
}

// TestTheWatchdogMakesALoopYield runs a loop with fuel for a thousand years, and checks that the
// count of used fuel is exact.
func TestTheWatchdogMakesALoopYield(t *testing.T) {
	const fuel = 1 << 60
	h := newHostile(t, loadHostile(t))
	h.SetFuel(fuel)
	yields := 0
	h.host = func(h *hostile, _ int, _ []uint64) {
		yields++
		h.SetFuel(h.Fuel())
	}

	turns := uint64(0)
	for yields < 3 {
		const most = 100_000_000
		if got, err := h.run("endless turns", most); err != nil || got != most {
			t.Fatalf("%d turns, %v", got, err)
		}
		turns += most
	}
	if got := fuel - h.Fuel(); uint64(got) != turns {
		t.Errorf("%d turns took %d fuel", turns, got)
	}
}

// TestTheWatchdogSeesManyGuests watches many guests: at any time, each is idle, computes, or is
// freed.
func TestTheWatchdogSeesManyGuests(t *testing.T) {
	p := loadHostile(t)
	var group sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for range 8 {
				h := newHostile(t, p)
				h.preempt = func() { panic(errEnough) }
				if _, err := h.run("endless tree", treeParams(63)...); !errors.Is(err, errEnough) {
					t.Errorf("it ended with %v", err)
				}
				h.unmap()
			}
		})
	}
	group.Wait()
}

// BenchmarkStopTheWorld stops all goroutines while 32 guests compute without consuming fuel, so
// each leaves only when the watchdog forces it to. The metric worst-ms is the longest wait.
func BenchmarkStopTheWorld(b *testing.B) {
	p := loadHostile(b)
	var isOver atomic.Bool
	var group sync.WaitGroup
	for range 32 {
		h := newHostile(b, p)
		h.preempt = func() {
			runtime.Gosched()
			if isOver.Load() {
				panic(errEnough)
			}
		}
		group.Go(func() { _, _ = h.run("endless tree", treeParams(63)...) }) // preempt ends it
	}
	defer group.Wait()
	defer isOver.Store(true)

	before := stwait.Read()
	for b.Loop() {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		<-time.After(time.Millisecond) // while the guests compute
	}
	b.ReportMetric(stwait.Read().Longest(before).Seconds()*1000, "worst-ms")
}
