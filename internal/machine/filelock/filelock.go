// Package filelock locks files between processes. The end of a process unlocks what it has
// locked, however it ends.
package filelock

import (
	"os"
	"time"
)

// Those who ask with IsHeld have the lock for some microseconds. Try waits for them so often.
const (
	maxWaits = 1_000
	wait     = time.Millisecond
)

// Try locks a file, and reports false if another open file holds the lock. Closing the file
// unlocks it.
func Try(f *os.File) (bool, error) {
	for range maxWaits {
		got, err := try(f, false)
		if got || err != nil {
			return got, err
		}
		probe, err := os.Open(f.Name())
		if err != nil {
			return false, nil //nolint:nilerr // the file was removed, and its holder has it still
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

// Alone locks a file, and reports false if another open file has locked it, alone or shared. It does
// not wait for those who ask.
func Alone(f *os.File) (bool, error) { return try(f, false) }

// Share locks a file together with others who share it, and reports false if another open file has
// locked it alone. Closing the file unlocks it.
func Share(f *os.File) (bool, error) { return try(f, true) }

// IsHeld reports whether another open file holds the lock. It disturbs neither Try nor IsHeld of
// others, if the file is closed soon.
func IsHeld(f *os.File) (bool, error) {
	free, err := try(f, true)
	return err == nil && !free, err
}
