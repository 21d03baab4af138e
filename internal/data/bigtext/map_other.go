//go:build !linux && !darwin && !windows

package bigtext

import (
	"io"
	"os"
)

// openFlags are added to the flags of each open.
const openFlags = 0

// mapFile reads n bytes of f into memory, on systems for which this package does not support
// mappings.
func mapFile(f *os.File, n int) (data []byte, unmap func() error, err error) {
	data = make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(n)), data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}

// mapRandom returns nil: short reads use the same mapping as scans.
func mapRandom(*os.File, int) (data []byte, unmap func() error) {
	return nil, func() error { return nil }
}

// tempFile returns a new file and a function that removes it after its Close.
func tempFile() (f *os.File, remove func() error, err error) {
	f, err = os.CreateTemp("", "rlm-input-*")
	if err != nil {
		return nil, nil, err
	}
	return f, func() error { return os.Remove(f.Name()) }, nil
}
