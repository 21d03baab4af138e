//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package filelock

import (
	"errors"
	"os"
)

// try fails: this system has no locks.
func try(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }
