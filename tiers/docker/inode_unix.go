//go:build unix

package docker

import (
	"io/fs"
	"syscall"
)

// inode identifies a file or folder by its device and inode number.
func inode(info fs.FileInfo) []uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}

	device := uint64(stat.Dev) //nolint:gosec,unconvert // the type differs between systems
	return []uint64{device, stat.Ino}
}
