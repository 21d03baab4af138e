//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// enforcedMemory returns the memory limit in a result.
func enforcedMemory(r tiers.Result) string {
	for _, e := range r.Enforced {
		if e.Limit == tiers.LimitMemory {
			return e.Value
		}
	}
	return ""
}

// TestAWorkerMayHaveWhatItsSessionsMay checks that each new session raises the memory limit of its
// worker.
func TestAWorkerMayHaveWhatItsSessionsMay(t *testing.T) {
	tier := openTier(t, Options{Memory: 40 << 30})
	var w *worker
	for n := int64(1); n <= 6; n++ {
		box := open(t, tier, tiers.Config{Limits: tiers.Limits{Memory: 3 << 30}}).(*sandbox)
		w = box.worker
		if limit := w.limit.Load(); limit < min(n*needOf(3<<30)+baseMemory, 40<<30) || limit > 40<<30 {
			t.Errorf("with %d sessions of 3 GiB, the worker may use %d MiB", n, limit>>20)
		}
		if r := runSnippet(t, box, "n = 1"); enforcedMemory(r) != fmt.Sprintf("%d bytes", 3<<30) {
			t.Errorf("the result says %q", enforcedMemory(r))
		}
	}
}

// TestALimitThatNoWorkerCanKeepIsLowered checks that a result reports the limit that applies.
func TestALimitThatNoWorkerCanKeepIsLowered(t *testing.T) {
	tier := openTier(t, Options{Memory: 1 << 30})
	most := tier.MostMemory()
	if most <= leastMemory || needOf(most)+baseMemory > 768<<20 {
		t.Fatalf("a session may have %d bytes", most)
	}
	box := open(t, tier, tiers.Config{Limits: tiers.Limits{Memory: 3 << 30}})
	r := runSnippet(t, box, "kept = 1\nfull = False\n"+
		"try: x = bytearray(3 << 29)\nexcept MemoryError: full = True\nprint(full)")
	if r.Stdout != "True\n" || enforcedMemory(r) != fmt.Sprintf("%d bytes", most) {
		t.Errorf("%q, and the result says %q", r.Stdout, enforcedMemory(r))
	}
	mustPrint(t, box, "print(kept)", "1\n")

	if _, err := New(openTier(t, Options{}), Options{Memory: 200 << 20}); err == nil ||
		!strings.Contains(err.Error(), "too little for a session") {
		t.Errorf("too little memory is the error %v", err)
	}
}

// TestSessionsBelowTheirLimitDoNotEndOneAnother checks sessions that use more than three gigabytes
// in one worker.
func TestSessionsBelowTheirLimitDoNotEndOneAnother(t *testing.T) {
	skip.Short(t, "it needs seven gigabytes of memory")
	if machineMemory() < 16<<30 {
		t.Skip("the machine has too little memory")
	}
	tier := openTier(t, Options{})
	var all []tiers.Sandbox
	for range 8 {
		box := open(t, tier, tiers.Config{})
		mustPrint(t, box, "held = bytearray(b'x') * 420_000_000\nprint(len(held))", "420000000\n")
		all = append(all, box)
	}
	for _, box := range all {
		mustPrint(t, box, "print(held[-1])", "120\n")
	}
}

// TestSessionsThatRestLeaveForMemory checks that resting sessions leave when there are more
// sessions than the memory can hold.
func TestSessionsThatRestLeaveForMemory(t *testing.T) {
	skip.UnderRace(t) // the detector's own memory does not fit
	const most = 512 << 20
	tier := openTier(t, Options{Memory: most})
	cfg := tiers.Config{Limits: tiers.Limits{Memory: 64 << 20}}
	var all []tiers.Sandbox
	for i := range 10 {
		box := open(t, tier, cfg)
		mustPrint(t, box, fmt.Sprintf("mine = bytearray([%d]) * 30_000_000\nprint(len(mine))", i), "30000000\n")
		all = append(all, box)
	}
	if s := tier.Stats(); s.Saved == 0 || s.Memory > most || len(s.Ended) > 0 {
		t.Errorf("%+v", s)
	}
	for i, box := range all {
		mustPrint(t, box, "print(mine[-1])", fmt.Sprintln(i))
	}
}

// TestASnippetWithoutMemoryIsRefused checks that the error reports what uses the memory.
func TestASnippetWithoutMemoryIsRefused(t *testing.T) {
	tier := openTier(t, Options{Memory: 4 << 30})
	box := open(t, tier, tenant("a")).(*sandbox)
	p := box.pool
	for tenant, want := range map[string]string{
		"a": "sessions of this tenant hold 3.0 GiB of the 3.0 GiB that a tenant may have",
		"b": "sessions hold 4.0 GiB of the 4.0 GiB that all workers may have",
	} {
		p.mu.Lock()
		p.memory.measured = time.Now().Add(time.Hour)
		p.memory.used, p.memory.total = map[string]int64{tenant: 3 << 30}, 4<<30
		p.mu.Unlock()
		err := p.explainRoom(box, box.growth())
		if !errors.Is(err, slots.ErrBusy) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := box.Run(ctx, tiers.Job{Source: "print(1)"})
	if broken := (*tiers.BrokenError)(nil); !errors.As(err, &broken) || broken.Effects != tiers.EffectsNeverRan {
		t.Errorf("without memory, the error is %v", err)
	}
	p.mu.Lock()
	p.memory.measured = time.Time{}
	p.mu.Unlock()
	mustPrint(t, box, "print(1)", "1\n")
	if p.memory.lentAll != 0 || len(p.memory.lent) != 0 {
		t.Errorf("%d bytes are lent while nothing runs", p.memory.lentAll)
	}
}

// TestMemoryIsLentWhileASnippetComputes checks that a snippet that waits for its host returns its
// memory.
func TestMemoryIsLentWhileASnippetComputes(t *testing.T) {
	tier := openTier(t, Options{})
	asked := make(chan struct{})
	cfg := tiers.Config{Functions: []tiers.Function{{Name: "wait"}}, Host: hostThatWaits(asked)}
	box := open(t, tier, cfg).(*sandbox)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = box.Run(ctx, tiers.Job{Source: "wait()"}) // it is interrupted
	}()
	<-asked
	for lent := int64(1); lent != 0; { // until the memory is returned
		box.pool.mu.Lock()
		lent = box.pool.memory.lentAll
		box.pool.mu.Unlock()
	}
	cancel()
	<-over
	if box.pool.memory.lentAll != 0 {
		t.Errorf("%d bytes are lent while nothing runs", box.pool.memory.lentAll)
	}
}

func TestTheMemoryOfThisMachineIsKnown(t *testing.T) {
	if n := machineMemory(); n < 64<<20 || n > 1<<50 {
		t.Errorf("this machine has %d bytes", n)
	}
}
