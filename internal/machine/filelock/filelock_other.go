//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package filelock

import (
	"errors"
	"os"
)

// try fails: there are no locks here.
func try(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }
