//go:build !linux

package bigtext

import (
	"errors"
	"os"
)

// charactersFile returns a new file and a function that removes it after its Close.
func charactersFile() (f *os.File, remove func() error, err error) { return tempFile() }

// link is supported only on Linux.
func (c *Characters) link(string) error { return errors.ErrUnsupported }
