package wasm

import (
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
)

// engineOf prepares an image, with or without reference-counted objects.
func engineOf(tb testing.TB, isCounted bool) *engine {
	tb.Helper()
	tier := New(Options{CacheDir: testcache.Dir(), isCounted: isCounted}).(*tier)
	tb.Cleanup(func() { _ = tier.Close() }) // nothing was written
	e, err := tier.prepare(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// exported is the cost of a sandbox's first export.
type exported struct {
	took  time.Duration
	bytes uint64 // bytes of pages no longer shared with others
}

// export exports the variables of a new sandbox, as a durable run does after a turn.
func export(tb testing.TB, e *engine) (x exported) {
	tb.Helper()
	opened, err := open(tb.Context(), e, tiers.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	s := opened.(*sandbox)
	defer s.Close()
	ran, err := s.Run(tb.Context(), tiers.Job{Source: "rows = list(range(1_000)); import json"})
	if err != nil || ran.Status != tiers.StatusOK {
		tb.Fatal(ran.Status, err)
	}

	begun := time.Now()
	state, err := s.Export(tb.Context())
	x.took = time.Since(begun)
	if err != nil || len(state.Left) > 0 || len(state.Data) == 0 {
		tb.Fatal(state.Left, err)
	}
	x.bytes = length(s.guest.in.mem.dirty())
	return x
}

// TestASandboxSharesWhatItOnlyLooksAt checks that an export, which reads all modules, leaves their
// pages shared. The control is an image whose objects count their references.
func TestASandboxSharesWhatItOnlyLooksAt(t *testing.T) {
	now, before := export(t, engineOf(t, false)), export(t, engineOf(t, true))
	t.Logf("%d bytes of its own, and %d with counted references", now.bytes, before.bytes)
	if 2*now.bytes > before.bytes {
		t.Errorf("a sandbox has %d bytes of its own, and %d with counted references", now.bytes, before.bytes)
	}
}

// BenchmarkFirstExport compares the export with that of an image whose objects count their
// references.
func BenchmarkFirstExport(b *testing.B) {
	now, before := engineOf(b, false), engineOf(b, true)
	var a, of exported
	for b.Loop() {
		one, other := export(b, now), export(b, before)
		a.took, a.bytes = a.took+one.took, one.bytes
		of.took, of.bytes = of.took+other.took, other.bytes
	}
	b.ReportMetric(float64(a.took.Microseconds())/float64(b.N), "µs/export")
	b.ReportMetric(float64(of.took)/float64(a.took), "x-counted")
	b.ReportMetric(float64(a.bytes)/1024, "KiB")
	b.ReportMetric(float64(of.bytes)/1024, "KiB-counted")
}
