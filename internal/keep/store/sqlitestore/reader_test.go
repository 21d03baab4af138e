package sqlitestore

import (
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// TestAReaderStopsNoWriter checks that the owner of a log can change the log, end and start again
// while a reader is in the middle of the log.
func TestAReaderStopsNoWriter(t *testing.T) {
	dir := t.TempDir()
	id := runA
	writes, reads := openTest(t, dir), openTest(t, dir)
	if err := writes.Create(t.Context(), store.Log{ID: id}); err != nil {
		t.Fatal(err)
	}
	lease, err := writes.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	add := func() {
		t.Helper()
		if err := writes.Append(t.Context(), lease, store.Entry{Kind: "step", Data: make([]byte, 64<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		add()
	}

	seen := 0
	err = reads.read(func(c *conn) error {
		return c.query("SELECT seq FROM entries", nil, func(*sqlite3.Stmt) error {
			if seen++; seen > 1 {
				return nil
			}
			for range 100 { // more than SQLite keeps in its log
				add()
			}
			if err := writes.Release(lease); err != nil {
				return err
			}
			lease, err = writes.Acquire(t.Context(), id)
			return err
		})
	})
	if err != nil || seen != 3 {
		t.Errorf("the reader saw %d entries of its moment: %v", seen, err)
	}
	entries, err := reads.Entries(t.Context(), id, store.Query{})
	if err != nil || len(entries) != 103 {
		t.Errorf("then there are %d entries, %v", len(entries), err)
	}
}
