//go:build !linux

package tiersuite

import (
	"errors"
	"os"
)

// dropCache is supported only on Linux.
func dropCache(*os.File) error { return errors.ErrUnsupported }
