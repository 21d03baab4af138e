//go:build linux || darwin

package bigtext

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openFlags are added to the flags of each open. With O_NONBLOCK, an open does not block if the
// file has become a FIFO since it was checked.
const openFlags = unix.O_NONBLOCK

// mapFile maps n bytes of f read-only.
func mapFile(f *os.File, n int) (data []byte, unmap func() error, err error) {
	if n == 0 {
		return nil, func() error { return nil }, nil
	}
	data, err = unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data, func() error { return os.NewSyscallError("munmap", unix.Munmap(data)) }, nil
}

// mapRandom maps n bytes of f a second time, for short reads: the system does not read ahead. It
// returns nil if that fails.
func mapRandom(f *os.File, n int) (data []byte, unmap func() error) {
	data, unmap, err := mapFile(f, n)
	if err != nil || n == 0 {
		return nil, func() error { return nil }
	}
	_ = unix.Madvise(data, unix.MADV_RANDOM) // without it, reads are only slower
	return data, unmap
}

// tempFile returns a new file whose name is already removed. After its Close, no file remains.
func tempFile() (f *os.File, remove func() error, err error) {
	f, err = os.CreateTemp("", "rlm-input-*")
	if err != nil {
		return nil, nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, func() error { return nil }, nil
}
