package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// write is a change to be written to the disk.
type write struct {
	do func(*conn) error // may be nil
	// clean deletes files; it may be nil. It runs in a later transaction, when the changes of do
	// are on the disk and no other change is running.
	clean func(*conn) error
	done  chan error // receives the outcome; nil if no caller waits for it
}

// maxGroup bounds the changes that share a transaction.
const maxGroup = 256

// Watch is called, if set, before and after each transaction reaches the disk. Tests end the
// process at these points.
var Watch atomic.Pointer[func()]

func watched() {
	if watch := Watch.Load(); watch != nil {
		(*watch)()
	}
}

// errClosed is the error of a store after Close.
var errClosed = errors.New("the store is closed")

// write makes a change and waits until it is on the disk.
func (f *Store) write(ctx context.Context, do func(*conn) error) error {
	return f.change(ctx, write{do: do})
}

// change is like write, for a change that may also delete files.
func (f *Store) change(ctx context.Context, w write) error {
	w.done = make(chan error, 1)
	if err := f.send(ctx, w); err != nil {
		return err
	}
	return explain(<-w.done) // not earlier: the caller must learn whether the change is committed
}

// send passes a change to the writer.
func (f *Store) send(ctx context.Context, w write) error {
	if f.readOnly {
		return store.ErrReadOnly
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return errClosed
	}
	f.sends.Add(1)
	f.mu.Unlock()
	defer f.sends.Done()

	select {
	case f.writes <- w:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serveWrites makes changes until Close. Changes that wait at the same time share a transaction,
// and so share the wait for the disk.
func (f *Store) serveWrites(c *conn) {
	defer close(f.ended)
	var noted error // the errors of changes for which no caller waits

	for first := range f.writes {
		group := []write{first}
		for more := true; more && len(group) < maxGroup; {
			select {
			case next, open := <-f.writes:
				if more = open; open {
					group = append(group, next)
				}
			default: // no more changes are waiting
				more = false
			}
		}

		watched()
		outcomes := commit(c, group)
		watched()

		for i, w := range group {
			if w.clean != nil && outcomes[i] == nil {
				outcomes[i] = c.within(func() error { return w.clean(c) })
			}
			if w.done == nil {
				noted = cmp.Or(noted, outcomes[i])
				continue
			}
			w.done <- errors.Join(noted, outcomes[i])
			noted = nil
		}
	}
	_ = c.close() // every change is on the disk
}

// commit makes changes in one transaction. A failing change does not affect the others. If the
// transaction fails, all changes fail.
func commit(c *conn, group []write) []error {
	outcomes := make([]error, len(group))
	err := c.within(func() error {
		for i, w := range group {
			if w.do == nil {
				continue
			}
			if err := c.do("SAVEPOINT change"); err != nil {
				return err
			}

			if outcomes[i] = w.do(c); outcomes[i] != nil && !c.GetAutocommit() {
				if err := c.do("ROLLBACK TO change"); err != nil {
					return err
				}
			}
			if c.GetAutocommit() { // the failure ended the transaction, like a full disk
				return fmt.Errorf("the transaction was undone: %w", outcomes[i])
			}
			if err := c.do("RELEASE change"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for i := range outcomes {
			outcomes[i] = err
		}
	}
	return outcomes
}
