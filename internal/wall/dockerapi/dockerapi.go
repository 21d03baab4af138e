// Package dockerapi wraps the small part of Docker's API that this project uses: one hardened kind
// of container, its standard streams, and images.
//
// Only this package uses Docker's client. Containers differ only in their [Spec]; everything else
// is always the same (see hardenedConfig). If a daemon accepts a setting with a warning, the
// package treats this as a refusal, because the setting would not be enforced.
//
// Every call has a deadline, so a daemon that hangs causes an error and does not block the caller.
package dockerapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/docker/docker/client"
)

// patience bounds a call that should take milliseconds, and takes seconds on a busy machine.
// longPatience bounds a call that starts or ends processes there.
const (
	patience     = 15 * time.Second
	longPatience = 30 * time.Second
)

// Client talks to one daemon. It is safe for concurrent use.
type Client struct {
	api *client.Client
}

// hostError is the address of an unusable daemon. It matches errors.ErrUnsupported, so callers can
// distinguish it from a daemon that does not answer.
type hostError struct {
	host, reason string
	err          error
}

func (e *hostError) Error() string {
	return fmt.Sprintf("cannot use the Docker daemon at %s: %s", e.host, e.reason)
}

func (e *hostError) Unwrap() error { return e.err }

func (*hostError) Is(target error) bool { return target == errors.ErrUnsupported }

// unreachableError says what to do about a daemon that cannot be reached. The socket's own error
// would only repeat the address.
type unreachableError struct {
	text string
	err  error
}

func (e *unreachableError) Error() string { return e.text }

func (e *unreachableError) Unwrap() error { return e.err }

// New returns a client for the daemon at host, a URL as in DOCKER_HOST. An empty host means the
// system's own socket. New does not connect. Its errors wrap errors.ErrUnsupported.
func New(host string) (*Client, error) {
	if host == "" {
		host = client.DefaultDockerHost
	}
	scheme, _, _ := strings.Cut(host, "://")
	if scheme != "unix" && scheme != "npipe" {
		return nil, &hostError{host: host, reason: "the daemon must be behind a socket of this " +
			"machine, because otherwise snippets and contexts would cross the network; forward " +
			"the daemon's socket, for example with ssh -L, and name the forwarded socket as " +
			"unix:///path"}
	}

	api, err := client.NewClientWithOpts(
		client.WithHost(host), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, &hostError{host, err.Error(), err}
	}
	return &Client{api: api}, nil
}

// Close closes idle connections.
func (c *Client) Close() error { return c.api.Close() }

// explain adds advice to the error of a missing or unresponsive daemon.
func (c *Client) explain(what string, err error) error {
	failed := client.IsErrConnectionFailed(err)
	denied := errors.Is(err, fs.ErrPermission) ||
		failed && strings.Contains(err.Error(), "permission denied")

	switch {
	case denied:
		return &unreachableError{err: err, text: fmt.Sprintf(
			"this user may not use the Docker daemon at %s: join the group that owns "+
				"the socket (usually sudo usermod -aG docker $USER, then log in again), "+
				"or name a rootless daemon with DOCKER_HOST", c.api.DaemonHost())}
	case failed:
		return &unreachableError{err: err, text: fmt.Sprintf(
			"no Docker daemon answers at %s: start the daemon, or name another with DOCKER_HOST",
			c.api.DaemonHost())}
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cannot %s: the Docker daemon does not answer: %w", what, err)
	}
	return fmt.Errorf("cannot %s: %w", what, err)
}
