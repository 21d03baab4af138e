//go:build !linux

package relay

import (
	"errors"
	"io"
)

// Run returns [errors.ErrUnsupported]: there are no walls here.
func Run(io.ReadWriter, []string) error { return errors.ErrUnsupported }
