//go:build linux || darwin

package bigtext

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// checkSpace reports an error if a file of size bytes would take more than half of the free
// space of its file system.
func checkSpace(f *os.File, size int64) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return fmt.Errorf("cannot ask for free space: %w", err)
	}
	if free := int64(s.Bavail) * int64(s.Bsize); size > free/2 { //nolint:unconvert // on macOS
		return fmt.Errorf("%w: it takes %d bytes, more than half of the %d that are free",
			ErrTooLarge, size, free)
	}
	return nil
}
