//go:build !linux

package gopipes

import (
	"errors"
	"net"
)

// Pipes are a program's outputs. There are no programs here.
type Pipes struct{}

// New returns [errors.ErrUnsupported].
func New(net.Conn) (*Pipes, error) { return nil, errors.ErrUnsupported }

// Attach does nothing.
func (*Pipes) Attach(Sink) {}

// Close does nothing.
func (*Pipes) Close() {}
