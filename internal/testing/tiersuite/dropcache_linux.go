package tiersuite

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCache takes the clean pages of a file out of the page cache.
func dropCache(f *os.File) error {
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
