package pgstore

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/testing/postgres"
)

func TestASchemaOfALaterProgramIsRefused(t *testing.T) {
	w := newWorld(t)
	check(t, w.open(t).Close())
	w.exec(t, "UPDATE version SET version = 99, needed = 1")
	check(t, w.open(t).Close()) // the later program has prepared for this one
	w.exec(t, "UPDATE version SET needed = 99")
	for _, reads := range []bool{false, true} {
		w.options.Reads = reads
		_, err := Open(t.Context(), w.url, w.options)
		if err == nil || !strings.Contains(err.Error(), "use the newer program") {
			t.Errorf("got %v", err)
		}
	}
}

func TestProcessesCreateTheTablesTogether(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := Open(t.Context(), w.url, w.options)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestAServerThatForgetsIsRefused(t *testing.T) {
	w := newWorld(t)
	w.url += "&options=-csynchronous_commit%3Doff"
	if _, err := Open(t.Context(), w.url, w.options); !errors.Is(err, errNotDurable) {
		t.Errorf("got %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no objects":       {},
		"a foreign schema": {Objects: newMemory(), Schema: `a"; DROP`},
		"short leases":     {Objects: newMemory(), Valid: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(t.Context(), "postgres://localhost/x", o); err == nil {
				t.Error("they are accepted")
			}
		})
	}
}

func TestALateErrorOfANoteIsTold(t *testing.T) {
	w := newWorld(t)
	s, lease := w.begin(t)
	s.Note(lease, store.Entry{Key: strings.Repeat("k", store.MaxKey+1)})
	if err := s.Append(t.Context(), lease, store.Entry{}); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("got %v", err)
	}
	check(t, s.Append(t.Context(), lease, store.Entry{}))
}

// TestOneBadChangeSparesTheOthers lets one of several changes that share a statement fail in the
// database: its content is deleted while the statement waits.
func TestOneBadChangeSparesTheOthers(t *testing.T) {
	w := newWorld(t)
	s, lease := w.begin(t)
	content := store.Entry{Turn: 1, Blob: []byte("soon gone")}
	check(t, s.Append(t.Context(), lease, content))
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	check(t, s.Cut(t.Context(), lease, 0))
	tx, err := w.connect(t).Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM heads FOR UPDATE")
	check(t, err)

	s.mu.Lock()
	h := s.held[runA]
	s.mu.Unlock()
	bad := store.Entry{Key: "bad", Digest: entries[0].Digest}
	outcomes := make([]error, 6)
	var all sync.WaitGroup
	for i := range outcomes {
		e := store.Entry{Key: "good"}
		if i == 3 {
			e = bad
		}
		all.Go(func() { outcomes[i] = s.Append(t.Context(), lease, e) })
		for { // the first one is in flight, and the others wait for it together
			s.mu.Lock()
			isThere := h.isBusy && len(h.pending) == i
			s.mu.Unlock()
			if isThere {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	_, err = tx.Exec(t.Context(), "DELETE FROM contents")
	check(t, err)
	check(t, tx.Commit(t.Context()))
	all.Wait()

	for i, err := range outcomes {
		if isBad := i == 3; isBad != errors.Is(err, store.ErrNotFound) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	if entries, err = s.Entries(t.Context(), runA, store.Query{}); err != nil || len(entries) != len(outcomes)-1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestACostThatNobodyCanPayIsRefused(t *testing.T) {
	w := newWorld(t)
	s, lease := w.begin(t)
	for _, cost := range []store.Cost{
		{Calls: math.MaxInt64}, {InputTokens: math.MinInt64}, {USD: math.NaN()}, {USD: math.Inf(1)},
	} {
		if err := s.Append(t.Context(), lease, store.Entry{Cost: cost}); err == nil {
			t.Errorf("%+v is accepted", cost)
		}
	}
}

// TestContentsAreWhereTheyBelong checks that large contents and large entries are objects, and that
// damage of one is found.
func TestContentsAreWhereTheyBelong(t *testing.T) {
	w := newWorld(t)
	s, lease := w.begin(t)
	large := bytes.Repeat([]byte("x"), smallContent+1)
	for _, e := range []store.Entry{
		{Blob: large[:smallContent], Data: large[:smallContent]},
		{Blob: large},
		{Data: large},
	} {
		check(t, s.Append(t.Context(), lease, e))
	}
	m := w.options.Objects.(*memory)
	if len(m.bytes) != 1 {
		t.Errorf("%d objects", len(m.bytes))
	}
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	if err != nil || len(entries) != 3 || !bytes.Equal(entries[2].Data, large) {
		t.Fatalf("%d entries, %v", len(entries), err)
	}

	for name := range m.bytes {
		m.bytes[name] = bytes.Repeat([]byte("y"), len(large))
	}
	_, err = s.Blob(t.Context(), entries[1].Digest)
	if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a damaged content: %v", err)
	}
	if _, err = s.Entries(t.Context(), runA, store.Query{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a damaged entry: %v", err)
	}
	clear(m.bytes)
	if _, err = s.Blob(t.Context(), entries[1].Digest); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a missing content: %v", err)
	}
	err = s.Append(t.Context(), lease, store.Entry{Digest: entries[1].Digest})
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an entry refers to a missing content: %v", err)
	}
	w.exec(t, "UPDATE entries SET key = 'other' WHERE data IS NOT NULL")
	if _, err = s.Entries(t.Context(), runA, store.Query{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a changed row: %v", err)
	}
}

// TestCollectSparesWhatIsNew checks the age, and the objects that have no row.
func TestCollectSparesWhatIsNew(t *testing.T) {
	w := newWorld(t)
	w.options.Spare = 0 // an hour
	s, lease := w.begin(t)
	large := bytes.Repeat([]byte("x"), smallContent+1)
	check(t, s.Append(t.Context(), lease,
		store.Entry{Turn: 1, Blob: large}, store.Entry{Turn: 1, Blob: []byte("small")}))
	check(t, s.Cut(t.Context(), lease, 0))
	m := w.options.Objects.(*memory)
	_, err := m.Put(t.Context(), strings.NewReader("without a row"))
	check(t, err)
	expect := func(blobs int, size int64) {
		t.Helper()
		if got, err := s.Collect(t.Context()); err != nil || got.Blobs != blobs || got.Bytes != size {
			t.Errorf("collected %+v, %v", got, err)
		}
	}

	expect(0, 0)
	w.exec(t, "UPDATE contents SET stored = stored - interval '2 hours'")
	for name := range m.times {
		m.times[name] = m.times[name].Add(-2 * time.Hour)
	}
	expect(3, int64(len(large)+len("small")+len("without a row")))
	if len(m.bytes) != 0 {
		t.Errorf("%d objects are left", len(m.bytes))
	}
}

func benchmark(b *testing.B, writers int, options ...string) {
	b.Helper()
	w := newWorld(b)
	if len(options) > 0 {
		w.server = postgres.Start(b, options...)
		w.url = w.server.URL()
	}
	s := w.open(b)
	leases := make(chan store.Lease, writers)
	for i := range writers {
		id := store.ID{Kind: store.Run, Name: "b" + strings.Repeat("x", i%60)}
		if i >= 60 {
			id.Kind = store.Session
		}
		check(b, s.Create(b.Context(), store.Log{ID: id}))
		lease, err := s.Acquire(b.Context(), id)
		check(b, err)
		leases <- lease
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 64)

	b.ResetTimer()
	var left sync.WaitGroup
	todo := make(chan struct{}, b.N)
	for range b.N {
		todo <- struct{}{}
	}
	close(todo)
	for range writers {
		left.Go(func() {
			lease := <-leases
			for range todo {
				if err := s.Append(b.Context(), lease, store.Entry{Kind: "step", Key: "k", Data: data}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	left.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// These append entries of 1 KiB to a log for each writer.

func BenchmarkAppend1(b *testing.B)  { benchmark(b, 1) }
func BenchmarkAppend16(b *testing.B) { benchmark(b, 16) }
func BenchmarkAppend64(b *testing.B) { benchmark(b, 64) }
