//go:build !linux

package bigtext

import "os"

// fileHoles returns nil: only Linux is asked for holes.
func fileHoles(*os.File, int64) []span { return nil }

// reserve creates an empty file of size bytes.
func reserve(f *os.File, size int64) error { return f.Truncate(size) }
