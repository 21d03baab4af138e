//go:build !unix

package docker

import "io/fs"

// inode is not known here: containers run on another kernel.
func inode(fs.FileInfo) []uint64 { return nil }
