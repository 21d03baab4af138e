//go:build !linux

package docker

import (
	"context"
	"errors"
	"net"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// gate works only if containers share this program's kernel.
type gate struct{}

func newGate() (*gate, error) {
	return nil, reject(
		"containers run on a separate kernel, which cannot pass a listener to the host",
	)
}

func (*gate) close() error         { return nil }
func (*gate) spec(*dockerapi.Spec) {}
func (*gate) listener(context.Context) (net.Listener, error) {
	return nil, errors.ErrUnsupported
}
