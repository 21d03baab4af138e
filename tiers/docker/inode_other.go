//go:build !unix

package docker

import "io/fs"

// inode returns nil: containers run on a different kernel.
func inode(fs.FileInfo) []uint64 { return nil }
