package dbfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/rlmhq/rlm/internal/machine/filelock"
)

// Hold marks a database as used by this process until the Hold is closed. Meanwhile no process
// replaces the database's files.
type Hold struct{ lock *os.File }

// Close releases the database.
func (h *Hold) Close() error {
	if h == nil || h.lock == nil {
		return nil
	}
	return h.lock.Close()
}

// The lock of a database is a file with this suffix next to the database.
const lockSuffix = "-lock"

// holdWait bounds the wait for a process that checks or replaces the files of a database.
const holdWait = 30 * time.Second

// BusyError reports that other processes are using a database.
type BusyError struct{ Path string }

// Error describes the problem and its remedy.
func (e *BusyError) Error() string {
	return fmt.Sprintf("another process uses %s: wait until it has ended, or stop it", e.Path)
}

// Use holds a database in order to open it. The first process to use the database compares the log
// with its index before SQLite rebuilds the index; the error is [ErrDamaged] if the log lacks
// changes. A database in a read-only folder is not held, because nothing can replace it.
func Use(path string) (*Hold, error) {
	if first, err := Alone(path); err == nil {
		if err := errors.Join(firstOf(finishReplace(path), checkLog(path)), first.Close()); err != nil {
			return nil, err
		}
	} else if busy := (*BusyError)(nil); !errors.As(err, &busy) {
		return ignoreUnlockable(err)
	}

	lock, err := openLock(path)
	if err != nil {
		return ignoreUnlockable(err)
	}
	// The other process holds the database exclusively for a moment.
	deadline, tick := time.After(holdWait), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		got, err := filelock.Share(lock)
		if got {
			return &Hold{lock}, nil
		}
		if err != nil {
			_ = lock.Close()
			return ignoreUnlockable(err)
		}
		select {
		case <-tick.C:
		case <-deadline:
			return nil, errors.Join(&BusyError{path}, lock.Close())
		}
	}
}

// ignoreUnlockable returns a Hold that does nothing if locks are not supported.
func ignoreUnlockable(err error) (*Hold, error) {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EROFS) {
		return &Hold{}, nil
	}
	return nil, err
}

// Alone holds a database exclusively. The error is a [*BusyError] if another process is using it.
func Alone(path string) (*Hold, error) {
	lock, err := openLock(path)
	if err != nil {
		return nil, err
	}
	got, err := filelock.Alone(lock)
	if err == nil && !got {
		err = &BusyError{path}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Hold{lock}, nil
}

// AloneWithin is like Alone, but waits for other processes, which may be about to end.
func AloneWithin(ctx context.Context, path string, longest time.Duration) (*Hold, error) {
	for begun := time.Now(); ; {
		hold, err := Alone(path)
		var busy *BusyError
		if !errors.As(err, &busy) || time.Since(begun) > longest {
			return hold, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path+lockSuffix, os.O_RDWR|os.O_CREATE, 0o600)
}
