package tiersuite

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCache drops the clean pages of a file from the page cache.
func dropCache(f *os.File) error {
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
