//go:build !linux

package tiersuite

import (
	"errors"
	"os"
)

// dropCache is for Linux only.
func dropCache(*os.File) error { return errors.ErrUnsupported }
