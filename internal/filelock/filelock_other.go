//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package filelock

import (
	"errors"
	"os"
)

// Try fails: there are no locks here.
func Try(*os.File) (bool, error) { return false, errors.ErrUnsupported }
