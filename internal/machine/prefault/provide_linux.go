package prefault

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// provide makes the kernel provide the whole pages of memory, and reports whether it did. Kernels
// before 5.14 do not support this.
func provide(memory []byte) bool {
	const page = 4096
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) & (page - 1))
	if skip >= len(memory) {
		return true
	}
	return unix.Madvise(memory[skip:], unix.MADV_POPULATE_WRITE) == nil
}
