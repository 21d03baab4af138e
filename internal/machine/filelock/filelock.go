// Package filelock locks files between processes. When a process ends, for whatever reason, its
// locks are released.
package filelock

import (
	"os"
	"time"
)

// Callers of IsHeld hold the lock for some microseconds. Try retries up to maxWaits times to
// outlast them.
const (
	maxWaits = 1_000
	wait     = time.Millisecond
)

// Try locks a file, or returns false if another open file holds the lock. Closing the file unlocks
// it.
func Try(f *os.File) (bool, error) {
	for range maxWaits {
		got, err := try(f, false)
		if got || err != nil {
			return got, err
		}
		probe, err := os.Open(f.Name())
		if err != nil {
			return false, nil //nolint:nilerr // the file was removed, and its holder still has it
		}
		isHeld, err := IsHeld(probe)
		_ = probe.Close()
		if isHeld || err != nil {
			return false, err
		}
		<-time.After(wait)
	}
	return false, nil
}

// Alone locks a file exclusively, or returns false if another open file holds any lock on it. It
// does not wait for callers of IsHeld.
func Alone(f *os.File) (bool, error) { return try(f, false) }

// Share locks a file in shared mode, or returns false if another open file holds an exclusive lock.
// Closing the file unlocks it.
func Share(f *os.File) (bool, error) { return try(f, true) }

// IsHeld reports whether another open file holds the lock. It does not disturb calls to Try or
// IsHeld elsewhere, provided that the file is closed soon.
func IsHeld(f *os.File) (bool, error) {
	free, err := try(f, true)
	return err == nil && !free, err
}
