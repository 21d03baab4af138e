package bigtext

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// charactersFile returns a new file without a name. The method link can name it if the file system
// supports O_TMPFILE.
func charactersFile() (f *os.File, remove func() error, err error) {
	f, err = os.OpenFile(os.TempDir(), os.O_RDWR|unix.O_TMPFILE, 0o400)
	if err != nil {
		return tempFile()
	}
	return f, func() error { return nil }, nil
}

// link gives the file a name.
func (c *Characters) link(name string) error {
	if err := c.File.Chmod(0o444); err != nil { // the guest runs as another user
		return err
	}
	own := fmt.Sprintf("/proc/self/fd/%d", c.File.Fd())
	return unix.Linkat(unix.AT_FDCWD, own, unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}
