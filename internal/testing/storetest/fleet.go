package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// testHandover passes a log from one process to another one, while both have the store open.
func testHandover(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	other := open()
	defer func() { check(t, other.Close()) }()
	check(t, s.Append(t.Context(), lease, store.Entry{Key: "first"}))

	_, err := other.Acquire(t.Context(), runA)
	var owned *store.OwnedError
	if !errors.As(err, &owned) || owned.Owner == "" {
		t.Errorf("a second owner: %v", err)
	}
	if owner, err := other.Owner(t.Context(), runA); err != nil || owner == "" {
		t.Errorf("the owner is %q, %v", owner, err)
	}
	if entries, err := other.Entries(t.Context(), runA, store.Query{}); err != nil || len(entries) != 1 {
		t.Errorf("the other process reads %d entries, %v", len(entries), err)
	}
	check(t, other.Create(t.Context(), store.Log{ID: store.ID{Kind: store.Run, Name: "b"}}))

	check(t, s.Release(lease))
	next, err := other.Acquire(t.Context(), runA)
	check(t, err)
	if next.Epoch <= lease.Epoch {
		t.Errorf("epoch %d after %d", next.Epoch, lease.Epoch)
	}
	wants(t, s.Append(t.Context(), lease, store.Entry{Key: "late"}), store.ErrLost)
	wants(t, s.Replace(t.Context(), lease, store.Entry{Key: "late"}), store.ErrLost)
	check(t, other.Append(t.Context(), next, store.Entry{Key: "second"}))
	if entries, err := s.Entries(t.Context(), runA, store.Query{}); err != nil || len(entries) != 2 ||
		entries[1].Key != "second" {
		t.Errorf("%+v, %v", entries, err)
	}
}

// testClaims lets processes race for logs: each log has one owner, and each owner its own epoch.
func testClaims(t *testing.T, open func() store.Store) {
	t.Helper()
	const logs, rounds = 10, 5
	stores := []store.Store{open(), open(), open()}
	for _, s := range stores {
		t.Cleanup(func() { check(t, s.Close()) })
	}

	for i := range logs {
		id := store.ID{Kind: store.Run, Name: fmt.Sprint("claim", i)}
		check(t, stores[0].Create(t.Context(), store.Log{ID: id}))
		last := int64(0)
		for range rounds {
			leases := claimTogether(t, stores, id)
			if len(leases) != 1 {
				t.Fatalf("%s has %d owners", id, len(leases))
			}
			for s, lease := range leases {
				if lease.Epoch <= last {
					t.Errorf("epoch %d after %d", lease.Epoch, last)
				}
				last = lease.Epoch
				check(t, s.Append(t.Context(), lease, store.Entry{}))
				check(t, s.Release(lease))
			}
		}
	}
}

// claimTogether lets all stores claim a log at the same time, and returns the leases.
func claimTogether(t *testing.T, stores []store.Store, id store.ID) map[store.Store]store.Lease {
	t.Helper()
	leases := map[store.Store]store.Lease{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, s := range stores {
		all.Go(func() {
			lease, err := s.Acquire(t.Context(), id)
			var owned *store.OwnedError
			if errors.As(err, &owned) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			leases[s] = lease
		})
	}
	all.Wait()
	return leases
}

// testCollect collects in one process, while another one adds and removes the same contents.
func testCollect(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	collector := open()
	defer func() { check(t, collector.Close()) }()

	ended := make(chan struct{})
	var collecting sync.WaitGroup
	defer collecting.Wait()
	defer close(ended)
	collecting.Go(func() {
		for {
			if _, err := collector.Collect(t.Context()); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	})

	contents := [][]byte{[]byte("small"), bytes.Repeat([]byte("large"), 20_000)}
	for round := range 10 {
		for i, content := range contents {
			check(t, s.Append(t.Context(), lease, store.Entry{Turn: 1, Key: fmt.Sprint(i), Blob: content}))
		}
		entries, err := s.Entries(t.Context(), runA, store.Query{})
		check(t, err)
		for i, e := range entries {
			if got, err := s.Blob(t.Context(), e.Digest); err != nil || !bytes.Equal(got, contents[i]) {
				t.Errorf("round %d: content %d has %d bytes, %v", round, i, len(got), err)
			}
		}
		check(t, s.Cut(t.Context(), lease, 0))
	}
}
