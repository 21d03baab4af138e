//go:build linux || darwin

package bigtext

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// CheckSpace returns an error if a file of size bytes, together with others of kept bytes, would
// occupy more than half of the space that its file system had without them.
func CheckSpace(f interface{ Fd() uintptr }, size, kept int64) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return fmt.Errorf("cannot determine the free space: %w", err)
	}
	free := int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // on macOS
	if room := (free+kept)/2 - kept; size > room {
		return fmt.Errorf("%w: it takes %d bytes; with %d bytes of other texts, that is more than half of the free %d",
			ErrTooLarge, size, kept, free+kept)
	}
	return nil
}
