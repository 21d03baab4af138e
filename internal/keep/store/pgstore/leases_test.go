package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// ownUntilLost is a process that writes to the log runA until it cannot.
func ownUntilLost(url string) {
	schema, url, _ := strings.Cut(url, " ")
	s, err := Open(context.Background(), url, Options{
		Schema: schema, Objects: newMemory(), Renew: 500 * time.Millisecond, Valid: 4 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	lease, err := s.Acquire(context.Background(), runA)
	fmt.Println("owned", err)
	for err == nil {
		err = s.Append(context.Background(), lease, store.Entry{Key: "stale"})
	}
	fmt.Println("lost", errors.Is(err, store.ErrLost), err)
}

// acquireLater takes the lease of runA as soon as its owner's has ended.
func acquireLater(t *testing.T, s *Store) store.Lease {
	t.Helper()
	for {
		lease, err := s.Acquire(t.Context(), runA)
		var owned *store.OwnedError
		if !errors.As(err, &owned) {
			check(t, err)
			return lease
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestTheDatabaseRefusesAnExpiredWorker checks the fence itself: the process believes that its lease
// is valid, and no other process has taken the log.
func TestTheDatabaseRefusesAnExpiredWorker(t *testing.T) {
	calls := map[string]func(s *Store, lease store.Lease) error{
		"append":    func(s *Store, l store.Lease) error { return s.Append(t.Context(), l, store.Entry{}) },
		"replace":   func(s *Store, l store.Lease) error { return s.Replace(t.Context(), l, store.Entry{}) },
		"set state": func(s *Store, l store.Lease) error { return s.SetState(t.Context(), l, store.State{Turn: 9}) },
		"cut":       func(s *Store, l store.Lease) error { return s.Cut(t.Context(), l, 0) },
		"remove":    func(s *Store, l store.Lease) error { return s.Remove(t.Context(), l) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.options.Renew = w.options.Valid / 2 // no renewal during the test
			s, lease := w.begin(t)
			check(t, s.Append(t.Context(), lease, store.Entry{Turn: 1}))
			w.exec(t, "UPDATE workers SET until = clock_timestamp() - interval '1 second'")
			if err := call(s, lease); !errors.Is(err, store.ErrLost) {
				t.Errorf("got %v", err)
			}
			log, err := s.Log(t.Context(), runA)
			if err != nil || log.Turn != 0 {
				t.Errorf("%+v, %v", log, err)
			}
			if entries, err := s.Entries(t.Context(), runA, store.Query{}); err != nil || len(entries) != 1 {
				t.Errorf("%d entries, %v", len(entries), err)
			}
		})
	}
}

// TestAWorkerThatCannotRenewStopsEarlier locks the row of a worker, so that no renewal ends.
func TestAWorkerThatCannotRenewStopsEarlier(t *testing.T) {
	t.Parallel() // it waits
	w := newWorld(t)
	w.options.Renew, w.options.Valid = 200*time.Millisecond, 10*time.Second
	s, lease := w.begin(t)
	tx, err := w.connect(t).Begin(t.Context())
	check(t, err)
	var until time.Time
	check(t, tx.QueryRow(t.Context(), "SELECT until FROM workers FOR UPDATE").Scan(&until))

	<-s.Watch(lease)
	if !time.Now().Before(until) {
		t.Errorf("it stopped %v after its lease", time.Since(until))
	}
	if err := s.Append(t.Context(), lease, store.Entry{}); !errors.Is(err, store.ErrLost) {
		t.Errorf("got %v", err)
	}
	select {
	case <-s.Watch(lease):
	default:
		t.Error("the lease looks valid")
	}

	check(t, tx.Rollback(t.Context()))
	next := acquireLater(t, s) // the process is a new worker
	check(t, s.Append(t.Context(), next, store.Entry{}))
	if next.Epoch <= lease.Epoch {
		t.Errorf("epoch %d after %d", next.Epoch, lease.Epoch)
	}
}

// TestTwoRenewalsKeepALease lets a lease live several times its validity.
func TestRenewalsKeepALease(t *testing.T) {
	w := newWorld(t)
	w.options.Renew, w.options.Valid = 100*time.Millisecond, 5*time.Second
	s, lease := w.begin(t)
	var first, now time.Time
	read := func(to *time.Time) {
		check(t, w.connect(t).QueryRow(t.Context(), "SELECT until FROM workers").Scan(to))
	}
	read(&first)
	for now = first; now.Sub(first) < time.Second; read(&now) {
		time.Sleep(20 * time.Millisecond)
	}
	check(t, s.Append(t.Context(), lease, store.Entry{}))
	select {
	case <-s.Watch(lease):
		t.Error("the lease is lost")
	default:
	}
}

// TestOneOfTwoWorkersOwns lets two workers race for 200 claims.
func TestOneOfTwoWorkersOwns(t *testing.T) {
	t.Parallel() // it waits
	const claims = 200
	w := newWorld(t)
	stores := []*Store{w.open(t), w.open(t)}
	check(t, stores[0].Create(t.Context(), store.Log{ID: runA}))

	var mu sync.Mutex
	owners := map[int64]int{}
	owned := 0 // how many own it now
	var all sync.WaitGroup
	for _, s := range stores {
		all.Go(func() {
			for done := false; !done; {
				lease, err := s.Acquire(t.Context(), runA)
				var other *store.OwnedError
				if errors.As(err, &other) {
					mu.Lock()
					done = len(owners) >= claims
					mu.Unlock()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}

				mu.Lock()
				owners[lease.Epoch]++
				owned++
				if owned != 1 || owners[lease.Epoch] != 1 {
					t.Errorf("%d own it, epoch %d is given %d times", owned, lease.Epoch, owners[lease.Epoch])
				}
				mu.Unlock()
				if err := s.Append(t.Context(), lease, store.Entry{}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				owned--
				done = len(owners) >= claims
				mu.Unlock()
				if err := s.Release(lease); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if len(owners) < claims {
		t.Errorf("%d claims", len(owners))
	}
}

// TestTheEndOfAStoreFreesItsLeases checks Close, also for a release that the database missed.
func TestTheEndOfAStoreFreesItsLeases(t *testing.T) {
	w := newWorld(t)
	s, lease := w.begin(t)
	s.Note(lease, store.Entry{Key: "noted"})
	check(t, s.Close())
	if err := s.Append(t.Context(), lease, store.Entry{}); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
	other := w.open(t)
	if owner, err := other.Owner(t.Context(), runA); err != nil || owner != "" {
		t.Errorf("the owner is %q, %v", owner, err)
	}
	_, err := other.Acquire(t.Context(), runA)
	check(t, err)
	if entries, err := other.Entries(t.Context(), runA, store.Query{}); err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
