//go:build !linux && !darwin

package server

import "math"

// mostFiles returns how many files this process may have open.
func mostFiles() int { return math.MaxInt32 }
