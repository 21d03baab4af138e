package bigtext

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// maxHoles bounds the list of holes; holes after the last one are read.
const maxHoles = 1 << 16

// fileHoles returns the holes in the first size bytes of f, by SEEK_DATA and SEEK_HOLE (lseek(2)),
// or none if the file system does not report them.
func fileHoles(f *os.File, size int64) []span {
	fd := int(f.Fd())
	defer unix.Seek(fd, 0, unix.SEEK_SET) //nolint:errcheck // the offset is not used
	var holes []span
	for at := int64(0); at < size && len(holes) < maxHoles; {
		data, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if err == unix.ENXIO { // no data up to the end
			return append(holes, span{at, size})
		}
		if err != nil || data < at {
			return holes
		}

		if data > at {
			holes = append(holes, span{at, min(data, size)})
		}
		if at, err = unix.Seek(fd, data, unix.SEEK_HOLE); err != nil || at <= data {
			return holes
		}
	}

	return holes
}

// reserve allocates size bytes for the file, without holes: a full disk must cause an error here,
// not when the file is read through a mapping, because a fault there ends the process.
func reserve(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(size)
	}
	return err
}
