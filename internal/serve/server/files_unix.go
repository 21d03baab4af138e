//go:build linux || darwin

package server

import (
	"math"
	"syscall"
)

// mostFiles returns how many files this process may have open.
func mostFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32)) //nolint:gosec // it fits
}
