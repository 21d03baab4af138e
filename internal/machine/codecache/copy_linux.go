package codecache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// createCopy creates a file at path for a copy that is read by name. The file is in memory until it
// is closed, which is faster than a disk.
func createCopy(path string) (*os.File, error) {
	fd, err := unix.MemfdCreate(filepath.Base(path), unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), path)
	link := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	if _, err := os.Stat(link); err != nil { // there is no /proc
		return os.Create(path)
	}
	if err := os.Symlink(link, path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
