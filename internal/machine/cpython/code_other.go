//go:build !linux || !(amd64 || arm64)

package cpython

import "errors"

// Code returns an error: there is no machine code for this system.
func Code() ([]byte, error) {
	return nil, errors.New("cpython: this program has no machine code for this system")
}
