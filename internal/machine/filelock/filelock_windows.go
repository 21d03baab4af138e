package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// farAway is the high half of the offset of the locked byte. No file is that large, so all of a
// locked file remains readable.
const farAway = 1 << 30

// try locks a file, either exclusively or in shared mode.
func try(f *os.File, isShared bool) (bool, error) {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !isShared {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{OffsetHigh: farAway})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
