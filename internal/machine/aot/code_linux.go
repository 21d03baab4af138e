//go:build linux && (amd64 || arm64)

package aot

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// copyCode copies code into memory of its own, which is never writable again.
func copyCode(code []byte, segments []Segment) ([]byte, error) {
	mapped, err := unix.Mmap(
		-1, 0, len(code), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS,
	)
	if err != nil {
		return nil, err
	}
	copy(mapped, code)
	return protect(mapped, segments)
}

// mapCode maps code from a file. The mapping is never writable.
func mapCode(file *os.File, offset int64, h *Header) ([]byte, error) {
	mapped, err := unix.Mmap(int(file.Fd()), offset, int(h.Size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return protect(mapped, h.Segments)
}

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
