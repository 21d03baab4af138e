//go:build !linux

package local

import (
	"net"

	"github.com/rlmhq/rlm/internal/jail"
)

// goStreams are a program's outputs. There are no programs here.
type goStreams struct{}

func newGoStreams(net.Conn) (*goStreams, error) { return nil, jail.ErrUnsupported }

func (*goStreams) attach(*goOutput) {}

func (*goStreams) close() {}
