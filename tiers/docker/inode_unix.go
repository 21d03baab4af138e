//go:build unix

package docker

import (
	"io/fs"
	"syscall"
)

// inode names a file or folder as the kernel does: by its device and its number.
func inode(info fs.FileInfo) []uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return []uint64{uint64(stat.Dev), stat.Ino} //nolint:gosec,unconvert // their types differ between systems
}
