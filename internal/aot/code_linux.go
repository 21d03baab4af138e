//go:build linux && amd64

package aot

import (
	"errors"

	"golang.org/x/sys/unix"
)

// mapCode copies code into memory of its own, which is then never writable again.
func mapCode(code []byte, segments []Segment) ([]byte, error) {
	mapped, err := unix.Mmap(
		-1, 0, len(code), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS,
	)
	if err != nil {
		return nil, err
	}
	copy(mapped, code)
	err = unix.Mprotect(mapped, unix.PROT_READ)
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
