package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/testing/postgres"
)

// writers appends entries to a log from several goroutines until stop is closed, and returns the
// entries that were acknowledged: a key for each writer, with numbers as data. Every write must
// succeed.
func startWriters(t *testing.T, s *Store, lease store.Lease, n int) (acknowledged *atomic.Int64, stop func()) {
	t.Helper()
	acknowledged = &atomic.Int64{}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	for w := range n {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				e := store.Entry{Key: fmt.Sprint(w), Data: fmt.Append(nil, i), Cost: store.Cost{Calls: 1}}
				if err := s.Append(context.Background(), lease, e); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	return acknowledged, func() { end(); all.Wait() }
}

// awaitCount waits until so many entries are acknowledged.
func awaitCount(t *testing.T, n *atomic.Int64, least int64) {
	t.Helper()
	for n.Load() < least && !t.Failed() {
		time.Sleep(5 * time.Millisecond)
	}
}

// expectEachOnce checks that the log has the acknowledged entries of each writer, once and in order.
func expectEachOnce(t *testing.T, s *Store, acknowledged int64) {
	t.Helper()
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	next := map[string]int{}
	for _, e := range entries {
		if string(e.Data) != fmt.Sprint(next[e.Key]) {
			t.Errorf("writer %s: entry %s comes after %d others", e.Key, e.Data, next[e.Key])
		}
		next[e.Key]++
	}
	log, err := s.Log(t.Context(), runA)
	check(t, err)
	if int64(len(entries)) != acknowledged || log.Spent.Calls != acknowledged {
		t.Errorf("%d entries and %d calls, and %d were acknowledged", len(entries), log.Spent.Calls, acknowledged)
	}
	t.Logf("%d entries were acknowledged and kept", acknowledged)
}

// ownServer returns a world with its own server. The leases outlive every failure of the test.
func ownServer(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.server = postgres.Start(t)
	w.url = w.server.URL()
	w.options.Valid, w.options.Timeout = 10*time.Minute, 2*time.Minute
	return w
}

func TestAKilledServerLosesNothing(t *testing.T) {
	t.Parallel() // it waits
	w := ownServer(t)
	s, lease := w.begin(t)
	acknowledged, stop := startWriters(t, s, lease, 16)
	for round := range int64(3) {
		awaitCount(t, acknowledged, (round+1)*200)
		w.server.Kill(t)
		w.server.Restart(t)
	}
	awaitCount(t, acknowledged, acknowledged.Load()+200)
	stop()
	expectEachOnce(t, s, acknowledged.Load())
}

func TestAPromotedStandbyHasEverything(t *testing.T) {
	t.Parallel() // it waits
	w := ownServer(t)
	standby := w.server.Standby(t)
	w.url = w.server.URL(standby)
	s, lease := w.begin(t)
	acknowledged, stop := startWriters(t, s, lease, 16)
	awaitCount(t, acknowledged, 500)

	w.url = standby.URL()
	expectReadOnly(t, w)
	w.server.Kill(t)
	standby.Promote(t)
	awaitCount(t, acknowledged, acknowledged.Load()+500)
	stop()
	expectEachOnce(t, s, acknowledged.Load())
}

// expectReadOnly opens the store of a standby.
func expectReadOnly(t *testing.T, w *world) {
	t.Helper()
	options := w.options
	options.Reads = true
	s, err := Open(t.Context(), w.url, options)
	check(t, err)
	defer s.Close()
	if !s.IsReadOnly() {
		t.Error("a standby can be written")
	}
	if _, err := s.Log(t.Context(), runA); err != nil {
		t.Error(err)
	}
	_, err = s.Acquire(t.Context(), runA)
	for _, err := range []error{
		err, s.Create(t.Context(), store.Log{ID: runA}), s.Append(t.Context(), store.Lease{ID: runA}, store.Entry{}),
		s.Remove(t.Context(), store.Lease{ID: runA}),
	} {
		if !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("got %v", err)
		}
	}
}

// TestClosedConnectionsLoseNothing ends the connections of a store again and again while it writes.
func TestClosedConnectionsLoseNothing(t *testing.T) {
	w := newWorld(t)
	s, lease := w.begin(t)
	acknowledged, stop := startWriters(t, s, lease, 16)
	conn := w.connect(t)
	for round := range int64(30) {
		awaitCount(t, acknowledged, round*50)
		_, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'rlm' AND query LIKE '%' || $1 || '%'`, w.options.Schema)
		check(t, err)
	}
	stop()
	expectEachOnce(t, s, acknowledged.Load())
}

// TestACommitWithoutAnAnswerIsKeptOnce ends the connection of an Append that is committed and waits
// for the standby, so that its outcome is unknown. The standby is stopped, so the Append must not
// return before it continues.
func TestACommitWithoutAnAnswerIsKeptOnce(t *testing.T) {
	t.Parallel() // it waits
	w := ownServer(t)
	standby := w.server.Standby(t)
	s, lease := w.begin(t)
	check(t, s.Append(t.Context(), lease, store.Entry{Key: "first"}))
	conn := w.connect(t)
	standby.Pause(t)

	done := make(chan error, 1)
	go func() { done <- s.Append(context.Background(), lease, store.Entry{Key: "second"}) }()
	ended := 0
	for _, end := range []string{"pg_terminate_backend", "pg_cancel_backend"} {
		for before := ended; ended == before; { // the second one waits for the verdict
			err := conn.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity
				WHERE wait_event = 'SyncRep' AND application_name = 'rlm' AND query LIKE '%heads%' AND pid <> $1
				LIMIT 1`, before).Scan(&ended)
			if errors.Is(err, pgx.ErrNoRows) {
				time.Sleep(time.Millisecond)
				continue
			}
			check(t, err)
			_, err = conn.Exec(t.Context(), "SELECT "+end+"($1)", ended)
			check(t, err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("it returned before the standby had it: %v", err)
	case <-time.After(200 * time.Millisecond): // as long as a wrong answer would rather take
	}

	standby.Continue(t)
	check(t, <-done)
	check(t, s.Append(t.Context(), lease, store.Entry{Key: "third"}))
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	if got := strings.Join(keys, " "); got != "first second third" {
		t.Errorf("the entries are %q", got)
	}
}

// TestAStatementThatComesLateChangesNothing repeats a statement whose write was given up, as a
// server could that had read it but not begun.
func TestAStatementThatComesLateChangesNothing(t *testing.T) {
	w := newWorld(t)
	s, lease := w.begin(t)
	s.mu.Lock()
	h := s.held[runA]
	s.mu.Unlock()
	late := &bundle{held: h, changes: []*change{{}}}
	check(t, s.prepare(t.Context(), []store.Entry{{Key: "late"}}, late.changes[0]))
	late.number()
	args := arguments([]*bundle{late})

	check(t, s.judge(t.Context(), []*bundle{late}, true))
	if !errors.Is(late.err, errNotKept) {
		t.Errorf("the verdict is %v", late.err)
	}
	_, err := s.pool.Exec(t.Context(), s.writeSQL, args...)
	check(t, err)
	check(t, s.Append(t.Context(), lease, store.Entry{Key: "next"}))
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	if err != nil || len(entries) != 1 || entries[0].Key != "next" {
		t.Errorf("%+v, %v", entries, err)
	}
}

// TestAStatementOfAnEarlierLeaseChangesNothing sends a statement after its lease was released, and
// the same worker has the log again.
func TestAStatementOfAnEarlierLeaseChangesNothing(t *testing.T) {
	w := newWorld(t)
	s, lease := w.begin(t)
	s.mu.Lock()
	late := &bundle{held: s.held[runA], changes: []*change{{}}}
	s.mu.Unlock()
	check(t, s.prepare(t.Context(), []store.Entry{{Key: "late"}}, late.changes[0]))
	late.number()
	args := arguments([]*bundle{late})

	check(t, s.Release(lease))
	_, err := s.Acquire(t.Context(), runA)
	check(t, err)
	_, err = s.pool.Exec(t.Context(), s.writeSQL, args...)
	check(t, err)
	if entries, err := s.Entries(t.Context(), runA, store.Query{}); err != nil || len(entries) > 0 {
		t.Errorf("%+v, %v", entries, err)
	}
}

// TestARepeatedStatementIsKeptOnce repeats a statement after its success.
func TestARepeatedStatementIsKeptOnce(t *testing.T) {
	w := newWorld(t)
	s, _ := w.begin(t)
	s.mu.Lock()
	h := s.held[runA]
	s.mu.Unlock()
	b := &bundle{held: h, changes: []*change{{}}}
	check(t, s.prepare(t.Context(), []store.Entry{{Cost: store.Cost{Calls: 1}}}, b.changes[0]))
	b.number()
	args := arguments([]*bundle{b})
	for range 2 {
		_, err := s.pool.Exec(t.Context(), s.writeSQL, args...)
		check(t, err)
		check(t, s.judge(t.Context(), []*bundle{b}, true))
		check(t, b.err)
	}
	if log, err := s.Log(t.Context(), runA); err != nil || log.Spent.Calls != 1 {
		t.Errorf("%+v, %v", log, err)
	}

	// The lease may have ended between the write and the question.
	w.exec(t, "DELETE FROM workers")
	other := w.open(t)
	_, err := other.Acquire(t.Context(), runA)
	check(t, err)
	check(t, s.judge(t.Context(), []*bundle{b}, true))
	check(t, b.err)
}

// TestASilentServerHoldsNobody calls everything on a server that accepts and does not answer.
func TestASilentServerHoldsNobody(t *testing.T) {
	t.Parallel() // it waits
	w := ownServer(t)
	w.options.Timeout = 30 * time.Second
	s, lease := w.begin(t)
	check(t, s.Append(t.Context(), lease, store.Entry{Blob: make([]byte, smallContent+1)}))
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	s.o.Timeout = 600 * time.Millisecond
	w.server.Pause(t)
	defer w.server.Continue(t)

	other := store.ID{Kind: store.Run, Name: "other"}
	var all sync.WaitGroup
	for name, call := range map[string]func(ctx context.Context) error{
		"Append":  func(ctx context.Context) error { return s.Append(ctx, lease, store.Entry{}) },
		"Create":  func(ctx context.Context) error { return s.Create(ctx, store.Log{ID: other}) },
		"Acquire": func(ctx context.Context) error { _, err := s.Acquire(ctx, other); return err },
		"Log":     func(ctx context.Context) error { _, err := s.Log(ctx, runA); return err },
		"Logs":    func(ctx context.Context) error { _, err := s.Logs(ctx, store.Filter{}); return err },
		"Entries": func(ctx context.Context) error { _, err := s.Entries(ctx, runA, store.Query{}); return err },
		"Owner":   func(ctx context.Context) error { _, err := s.Owner(ctx, other); return err },
		"Blob":    func(ctx context.Context) error { _, err := s.Blob(ctx, entries[0].Digest); return err },
		"Copy":    func(ctx context.Context) error { return s.Copy(ctx, runA, 1, store.Log{ID: other}) },
		"Collect": func(ctx context.Context) error { _, err := s.Collect(ctx); return err },
	} {
		for _, limit := range []time.Duration{time.Minute, time.Millisecond} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				if err := call(ctx); err == nil || limit == time.Minute && ctx.Err() != nil {
					t.Errorf("%s within %v: %v, %v", name, limit, err, ctx.Err())
				}
			})
		}
	}
	all.Wait()
	if err := s.Release(lease); err != nil {
		t.Logf("Release: %v", err)
	}
	if err := s.Close(); err == nil {
		t.Error("Close has freed the leases")
	}
}

// TestAnAddressThatOnlyAcceptsIsNoServer opens a store at a listener that says nothing.
func TestAnAddressThatOnlyAcceptsIsNoServer(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	url := "postgres://rlm:secret@" + listener.Addr().String() + "/postgres?sslmode=disable"
	_, err = Open(t.Context(), url, Options{Objects: newMemory(), Timeout: 300 * time.Millisecond})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// TestASilentHostIsPassedOver names a host that accepts and says nothing before the server.
func TestASilentHostIsPassedOver(t *testing.T) {
	w := newWorld(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	check(t, err)
	w.url = strings.NewReplacer("host=", "host=127.0.0.1,", "port=", "port="+port+",").Replace(w.url)
	w.options.Timeout = 10 * time.Second
	s, lease := w.begin(t)
	check(t, s.Append(t.Context(), lease, store.Entry{}))
}

// TestCallsOutliveARestart makes calls while the server is down.
func TestCallsOutliveARestart(t *testing.T) {
	t.Parallel() // it waits
	w := ownServer(t)
	s, lease := w.begin(t)
	w.server.Kill(t)
	other := store.ID{Kind: store.Run, Name: "other"}
	calls := map[string]func() error{
		"Create":   func() error { return s.Create(t.Context(), store.Log{ID: other}) },
		"Log":      func() error { _, err := s.Log(t.Context(), runA); return err },
		"Logs":     func() error { _, err := s.Logs(t.Context(), store.Filter{}); return err },
		"SetState": func() error { return s.SetState(t.Context(), lease, store.State{Status: "x"}) },
		"Collect":  func() error { _, err := s.Collect(t.Context()); return err },
	}
	var all, begun sync.WaitGroup
	begun.Add(len(calls))
	for name, call := range calls {
		all.Go(func() {
			begun.Done()
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	begun.Wait()
	w.server.Restart(t)
	all.Wait()
	if logs, err := s.Logs(t.Context(), store.Filter{}); err != nil || len(logs) != 2 {
		t.Errorf("%d logs, %v", len(logs), err)
	}
}

// TestAReleaseIsMadeUpFor releases a lease while the server is down.
func TestAReleaseIsMadeUpFor(t *testing.T) {
	t.Parallel() // it waits
	w := ownServer(t)
	w.options.Timeout, w.options.Renew = 2*time.Second, 100*time.Millisecond
	s, lease := w.begin(t)
	w.server.Kill(t)
	if err := s.Release(lease); err == nil {
		t.Error("a server that is down has released it")
	}
	w.server.Restart(t)
	acquireLater(t, w.open(t))
	check(t, s.Close())
}
