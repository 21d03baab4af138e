package codecache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rlmhq/rlm/internal/machine/filelock"
)

// These are the longest wait for another process that is preparing, and the pause between two
// checks. After the longest wait, both processes prepare, which does no harm.
const (
	lockWait = time.Minute
	lockLook = 20 * time.Millisecond
)

// lock keeps other processes with the same cache directory from preparing at the same time,
// until release.
func (c *Cache) lock(ctx context.Context) (release func(), err error) {
	err = os.MkdirAll(c.Dir, 0o700)
	if err != nil {
		return nil, fmt.Errorf("cannot use the cache directory: %w", err)
	}

	f, err := os.OpenFile(filepath.Join(c.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot use the cache directory: %w", err)
	}
	release = func() { _ = f.Close() } // nothing was written
	for begun := time.Now(); ; {
		got, failed := filelock.Try(f)
		if failed != nil {
			c.Log.Debug("the cache directory cannot be locked", "error", failed)
		}
		if got || failed != nil || time.Since(begun) > lockWait {
			//nolint:nilerr // without the lock, two processes may prepare
			return release, nil
		}

		select {
		case <-time.After(lockLook):
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
}
