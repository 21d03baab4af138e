//go:build !linux

package bigtext

import "os"

// fileHoles returns none: only Linux is asked.
func fileHoles(*os.File, int64) []span { return nil }

// reserve makes an empty file size bytes long.
func reserve(f *os.File, size int64) error { return f.Truncate(size) }
