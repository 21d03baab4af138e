//go:build linux && (amd64 || arm64)

package aot

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// copyCode copies code into its own memory mapping, which never becomes writable again.
func copyCode(code []byte, segments []Segment) ([]byte, error) {
	mapped, err := newCode(len(code))
	if err != nil {
		return nil, err
	}
	copy(mapped, code)
	return protect(mapped, segments)
}

// newCode returns writable memory for code.
func newCode(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}

// mapCode maps code from a file. The mapping is never writable. A file whose file system forbids
// execution is copied instead.
func mapCode(file *os.File, offset int64, h *Header) ([]byte, error) {
	mapped, err := unix.Mmap(int(file.Fd()), offset, int(h.Size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	code, err := protect(mapped, h.Segments)
	if !isForbidden(err) {
		return code, err
	}

	if mapped, err = newCode(int(h.Size)); err != nil {
		return nil, err
	}
	if _, err := file.ReadAt(mapped, offset); err != nil {
		return nil, errors.Join(err, unix.Munmap(mapped))
	}
	return protect(mapped, h.Segments)
}

// isForbidden reports whether the kernel refused to execute a mapping, as it does for a file on a
// file system mounted with noexec.
func isForbidden(err error) bool { return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) }

// protect makes segments of the code executable. After an error, the code is unmapped.
func protect(mapped []byte, segments []Segment) ([]byte, error) {
	err := unix.Mprotect(mapped, unix.PROT_READ)
	for _, s := range segments {
		if s.IsExecutable {
			part := mapped[s.Offset : s.Offset+s.Size]
			err = errors.Join(err, unix.Mprotect(part, unix.PROT_READ|unix.PROT_EXEC))
		}
	}

	if err != nil {
		return nil, errors.Join(err, unix.Munmap(mapped))
	}
	return mapped, nil
}

func unmapCode(code []byte) error { return unix.Munmap(code) }
