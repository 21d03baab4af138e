package session

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// canLink reports whether this system can name a file that was created without a name.
const canLink = true

// lockFolder locks a folder until the file is closed. It fails if another process has locked it.
func lockFolder(folder string) (*os.File, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW
	f, err := os.OpenFile(folder, os.O_RDONLY|flags, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
