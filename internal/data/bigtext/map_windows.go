package bigtext

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// openFlags are added to the flags of each open.
const openFlags = 0

// mapFile maps n bytes of f read-only. Windows refuses to truncate a mapped
// file, so only a failing disk can cause a fault.
func mapFile(f *os.File, n int) (data []byte, unmap func() error, err error) {
	if n == 0 {
		return nil, func() error { return nil }, nil
	}
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0,
		nil)
	if err != nil {
		return nil, nil, os.NewSyscallError("CreateFileMapping", err)
	}

	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(n))
	if err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("MapViewOfFile", err),
			windows.CloseHandle(h))
	}

	// The system chose the address, which is outside Go's heap; vet cannot detect this.
	data = unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n)
	return data, func() error {
		return errors.Join(windows.UnmapViewOfFile(addr), windows.CloseHandle(h))
	}, nil
}

// mapRandom returns nil: short reads use the same mapping as scans.
func mapRandom(*os.File, int) (data []byte, unmap func() error) {
	return nil, func() error { return nil }
}

// tempFile returns a new file and a function that removes it after its Close: Windows cannot remove
// an open file.
func tempFile() (f *os.File, remove func() error, err error) {
	f, err = os.CreateTemp("", "rlm-input-*")
	if err != nil {
		return nil, nil, err
	}
	return f, func() error { return os.Remove(f.Name()) }, nil
}
