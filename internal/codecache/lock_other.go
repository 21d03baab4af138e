//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package codecache

import (
	"errors"
	"os"
)

// tryLock fails: each process prepares for itself.
func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
