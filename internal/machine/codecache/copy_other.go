//go:build !linux

package codecache

import "os"

// createCopy makes a file at path for a copy that is read by its name.
func createCopy(path string) (*os.File, error) { return os.Create(path) }
