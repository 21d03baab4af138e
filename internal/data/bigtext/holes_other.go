//go:build !linux

package bigtext

import "os"

// fileHoles returns nil: holes are found only on Linux.
func fileHoles(*os.File, int64) []span { return nil }

// reserve sets the size of the file.
func reserve(f *os.File, size int64) error { return f.Truncate(size) }
