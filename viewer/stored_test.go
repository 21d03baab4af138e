package viewer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
)

// writing is a process that works on a run.
type writing struct {
	testing.TB
	store *sqlitestore.Store
	lease store.Lease
}

// begin begins a run in the store of a folder.
func begin(tb testing.TB, dir string) *writing {
	tb.Helper()
	s, err := sqlitestore.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	id := store.ID{Kind: store.Run, Name: "a"}
	log := store.Log{ID: id, Title: "why?", State: store.State{Status: "running"}}
	if err := s.Create(tb.Context(), log); err != nil {
		tb.Fatal(err)
	}
	lease, err := s.Acquire(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return &writing{tb, s, lease}
}

// call adds calls of a turn to the run log, numbered from a start.
func (w *writing) call(from, calls int) {
	w.Helper()
	const data = `{"about":"a/m: what is in it?","ending":{"response":{"Text":"This part is about the weather."}}}`
	entries := make([]store.Entry, calls)
	for i := range entries {
		entries[i] = store.Entry{
			Turn: 1, Kind: "step", Key: fmt.Sprintf("/turn 1/snippet 1/call 1/slot %d/leaf 1", from+i),
			Data: []byte(data),
			Cost: store.Cost{Calls: 1, InputTokens: 900, OutputTokens: 10},
		}
	}
	if err := w.store.Append(w.Context(), w.lease, entries...); err != nil {
		w.Fatal(err)
	}
}

// source opens a source as another process would.
func source(tb testing.TB, dir string, names ...string) *Stored {
	tb.Helper()
	s, err := sqlitestore.OpenToRead(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return &Stored{Store: s, Names: names}
}

func open(tb testing.TB, s *Stored) *Run {
	tb.Helper()
	run, err := s.Open(tb.Context(), "a")
	if err != nil {
		tb.Fatal(err)
	}
	return run
}

func TestAStoredRunGrows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir)
	w.call(0, 2)
	s := source(t, dir)
	run := open(t, s)
	if len(run.Nodes) != 5 || run.Status != "running" || run.Title != "why?" {
		t.Errorf("%+v", run)
	}

	w.call(2, 1)
	if err := s.Wait(t.Context(), "a", run); err != nil {
		t.Fatal(err)
	}
	if run = open(t, s); len(run.Nodes) != 6 || run.Nodes[1].Status != "running" {
		t.Errorf("%+v", run)
	}
	if err := w.store.Close(); err != nil { // the process of the run ends
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), "a", run); err != nil {
		t.Fatal(err)
	}
	if run = open(t, s); run.Status != "interrupted" || run.Nodes[1].Status != "interrupted" {
		t.Errorf("%+v", run)
	}
}

// TestViewersShareARun checks that an additional browser needs neither memory for another copy of
// the run nor time to make one.
func TestViewersShareARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir)
	w.call(0, 2)
	s := source(t, dir)
	first := open(t, s)
	if open(t, s) != first {
		t.Error("each viewer has its own copy")
	}

	w.call(2, 1)
	second := open(t, s)
	if second == first || len(second.Nodes) != 6 || len(first.Nodes) != 5 || open(t, s) != second {
		t.Errorf("%+v", second)
	}
}

func TestOnlyNamedRunsAreShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin(t, dir)
	s := source(t, dir, "b")
	if _, err := s.Open(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := source(t, dir).Open(t.Context(), "b"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// BenchmarkALargeRunGrows measures how long the viewer takes to read a run with 100,000 calls, and
// then its next call.
func BenchmarkALargeRunGrows(b *testing.B) {
	dir := b.TempDir()
	w := begin(b, dir)
	const calls = 100_000
	w.call(0, calls)
	s := source(b, dir)
	began := time.Now()
	open(b, s)
	opened := time.Since(began)

	number := calls
	for b.Loop() {
		b.StopTimer()
		w.call(number, 1)
		number++
		b.StartTimer()
		open(b, s)
	}
	b.ReportMetric(float64(opened.Milliseconds()), "ms/open")
	if run := open(b, s); len(run.Nodes) != number+3 {
		b.Errorf("%d nodes", len(run.Nodes))
	}
}
