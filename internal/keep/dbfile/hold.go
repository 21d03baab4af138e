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

// Hold says that this process uses a database, until it is closed. Meanwhile no process replaces
// the files of the database.
type Hold struct{ lock *os.File }

// Close ends the use.
func (h *Hold) Close() error {
	if h == nil || h.lock == nil {
		return nil
	}
	return h.lock.Close()
}

// The lock of a database is a file beside it.
const lockSuffix = "-lock"

// holdWait bounds the wait for a process that looks at the files of a database, or replaces them.
const holdWait = 30 * time.Second

// BusyError says that other processes use a database.
type BusyError struct{ Path string }

// Error says what to do.
func (e *BusyError) Error() string {
	return fmt.Sprintf("another process uses %s: wait until it has ended, or stop it", e.Path)
}

// Use holds a database to open it. The first process that uses it compares the log with its index,
// before SQLite makes a new index; the error is [ErrDamaged] if the log lacks changes. A database
// in a folder that cannot be written is not held, because nothing replaces it.
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
	// The other process holds it alone for a moment.
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

// ignoreUnlockable returns a hold of nothing where there are no locks.
func ignoreUnlockable(err error) (*Hold, error) {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EROFS) {
		return &Hold{}, nil
	}
	return nil, err
}

// Alone holds a database that no other process uses. The error is a [*BusyError] if one does.
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

// AloneWithin is Alone, and waits for other processes, which may be about to end.
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
