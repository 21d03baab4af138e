//go:build linux || darwin

package server

import (
	"math"
	"syscall"
)

// mostFiles returns the maximum number of files that this process may have open.
func mostFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32)) //nolint:gosec // it fits
}

// freeSpace returns the number of bytes that this user may still write to a folder's disk, and the
// disk's size.
func freeSpace(dir string) (free, size uint64, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, 0, err
	}
	block := uint64(disk.Bsize) //nolint:gosec // not negative
	return disk.Bavail * block, disk.Blocks * block, nil
}
