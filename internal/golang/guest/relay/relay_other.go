//go:build !linux

package relay

import (
	"errors"
	"io"
)

// Run returns [errors.ErrUnsupported], because this system has no walls.
func Run(io.ReadWriter, []string) error { return errors.ErrUnsupported }
