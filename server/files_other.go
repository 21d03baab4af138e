//go:build !linux && !darwin

package server

import "math"

// mostFiles returns the maximum number of files that this process may have open.
func mostFiles() int { return math.MaxInt32 }

// freeSpace does not know, so it returns the maximum.
func freeSpace(string) (free, size uint64, err error) { return math.MaxUint64, math.MaxUint64, nil }
