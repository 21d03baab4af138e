//go:build !linux

package codecache

import "os"

// createCopy creates a file at path for a copy that is read by name.
func createCopy(path string) (*os.File, error) { return os.Create(path) }
