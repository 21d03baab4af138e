//go:build !linux

package bigtext

import (
	"errors"
	"os"
)

// charactersFile returns a new file and what removes it after its Close.
func charactersFile() (f *os.File, remove func() error, err error) { return tempFile() }

// link is for Linux only.
func (c *Characters) link(string) error { return errors.ErrUnsupported }
