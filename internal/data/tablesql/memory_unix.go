//go:build unix

package tablesql

import "golang.org/x/sys/unix"

const canTake = true

// forbid makes every access fault.
func forbid(bytes []byte) {
	_ = unix.Mprotect(bytes, unix.PROT_NONE) // whole pages that are mapped
}

// unmap releases memory that the engine mapped with the same function.
func unmap(bytes []byte) error { return unix.Munmap(bytes) }
