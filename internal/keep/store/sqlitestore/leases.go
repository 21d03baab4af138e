package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/machine/filelock"
)

const lockFolder = "locks"

// Acquire implements [store.Store].
func (f *Store) Acquire(ctx context.Context, id store.ID) (store.Lease, error) {
	if err := id.Check(); err != nil {
		return store.Lease{}, err
	}
	if f.readOnly {
		return store.Lease{}, store.ErrReadOnly
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.locks[id] != nil {
		return store.Lease{}, &store.OwnedError{ID: id, Owner: "this process"}
	}

	lock, err := os.OpenFile(f.lockPath(id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return store.Lease{}, fmt.Errorf("cannot lock %s: %w", id, err)
	}
	lease, err := f.own(ctx, id, lock)
	if err != nil {
		return store.Lease{}, errors.Join(err, lock.Close())
	}
	f.locks[id] = lock
	return lease, nil
}

func (f *Store) lockPath(id store.ID) string {
	return filepath.Join(f.dir, lockFolder, string(id.Kind)+"-"+id.Name)
}

// own makes this process the owner of a log, unless another process has locked its file. The caller
// holds f.mu.
func (f *Store) own(ctx context.Context, id store.ID, lock *os.File) (store.Lease, error) {
	got, err := filelock.Try(lock)
	if err != nil {
		return store.Lease{}, fmt.Errorf("cannot lock %s: %w", id, err)
	}
	if !got {
		return store.Lease{}, &store.OwnedError{ID: id, Owner: f.ownerOf(id)}
	}

	if f.closed {
		return store.Lease{}, errClosed
	}

	done := make(chan error, 1)
	lease := store.Lease{ID: id}
	w := write{done: done, do: func(c *conn) error {
		log, err := findLog(c, id)
		if err != nil {
			return err
		}
		return c.query("UPDATE logs SET epoch = epoch + 1, owner = ? WHERE id = ? RETURNING epoch",
			[]any{describeProcess(), log}, func(row *sqlite3.Stmt) error {
				lease.Epoch = row.ColumnInt64(0)
				return nil
			})
	}}

	select {
	case f.writes <- w:
		return lease, explain(<-done)
	case <-ctx.Done():
		return store.Lease{}, context.Cause(ctx)
	}
}

// describeProcess describes this process for humans.
func describeProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// Owner implements [store.Store].
func (f *Store) Owner(ctx context.Context, id store.ID) (string, error) {
	if err := errors.Join(ctx.Err(), id.Check()); err != nil {
		return "", err
	}
	f.mu.Lock()
	own := f.locks[id] != nil
	f.mu.Unlock()
	if own {
		return "this process", nil
	}

	lock, err := os.Open(f.lockPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot look at the lock of %s: %w", id, err)
	}
	defer lock.Close()
	isHeld, err := filelock.IsHeld(lock)
	if !isHeld || err != nil {
		return "", err
	}
	return f.ownerOf(id), nil
}

// ownerOf names the owner of a log as precisely as possible.
func (f *Store) ownerOf(id store.ID) string {
	owner := ""
	err := f.read(func(c *conn) error {
		return c.query("SELECT owner FROM logs WHERE kind = ? AND name = ?",
			[]any{string(id.Kind), id.Name}, func(row *sqlite3.Stmt) error {
				owner = row.ColumnText(0)
				return nil
			})
	})
	if err != nil || owner == "" {
		return "another process"
	}
	return owner
}

// Release implements [store.Store].
func (f *Store) Release(lease store.Lease) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	lock := f.locks[lease.ID]
	if lock == nil {
		return nil
	}
	delete(f.locks, lease.ID)
	return lock.Close()
}

// checkLease returns the number of the log if the lease is the newest one.
func checkLease(c *conn, l store.Lease) (log int64, err error) {
	var epoch int64
	err = c.query("SELECT id, epoch FROM logs WHERE kind = ? AND name = ?",
		[]any{string(l.ID.Kind), l.ID.Name}, func(row *sqlite3.Stmt) error {
			log, epoch = row.ColumnInt64(0), row.ColumnInt64(1)
			return nil
		})
	switch {
	case err != nil:
		return 0, err
	case log == 0:
		return 0, fmt.Errorf("%s: %w", l.ID, store.ErrNotFound)
	case epoch != l.Epoch:
		return 0, fmt.Errorf("%s: %w", l.ID, store.ErrLost)
	}
	return log, nil
}
