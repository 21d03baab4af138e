package codecache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// createCopy makes a file at path for a copy that is read by its name. It lies in memory until
// it is closed, which takes less time than a disk.
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
