//go:build !linux

package session

import (
	"errors"
	"os"
)

const canLink = false

func lockFolder(string) (*os.File, error) { return nil, errors.ErrUnsupported }
