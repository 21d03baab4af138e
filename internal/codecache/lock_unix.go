//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package codecache

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file, and reports false if another process holds the lock. Closing the file
// or ending the process unlocks it.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
