//go:build !linux && !darwin

package server

import "math"

// mostFiles returns the maximum number of files that this process may have open.
func mostFiles() int { return math.MaxInt32 }

// freeSpace returns the maximum, because the free space is unknown on this system.
func freeSpace(string) (free, size uint64, err error) { return math.MaxUint64, math.MaxUint64, nil }
