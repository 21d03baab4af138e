package dockerapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// Container is a started container.
type Container struct {
	// ID is the daemon's identifier for the container.
	ID string
	*streams
	client *Client
	began  time.Time
}

// Errors that callers distinguish.
var (
	// ErrNoImage means that the image does not exist.
	ErrNoImage = errors.New("the image does not exist")
	// ErrGone means that the container does not exist, or has ended.
	ErrGone = errors.New("the container is gone")
)

// removeIn bounds the removal of a container that could not be started.
const removeIn = 10 * time.Second

// Start creates a container, connects its streams and starts it. A goroutine passes the container's
// standard error to stderr until the streams end. The context bounds only the start.
//
// After an error, no container remains, unless the daemon did not answer. In that case, the caller
// must remove the container later, by the Spec's name.
func (c *Client) Start(ctx context.Context, spec Spec, stderr func([]byte)) (*Container, error) {
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()

	config, host := hardenedConfig(spec), hardenedHost(spec)
	for _, layer := range spec.Off {
		layer.leaveOut(config, host)
	}
	made, err := c.api.ContainerCreate(ctx, config, host, noNetworks, nil, spec.Name)
	if errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("cannot create a container of %s: %w", spec.Image, ErrNoImage)
	}
	if err != nil {
		return nil, c.explain("create a container", err)
	}

	started, err := c.startMade(ctx, made, stderr)
	if err != nil {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeIn)
		defer cancel()
		return nil, errors.Join(err, c.Remove(own, made.ID))
	}
	return started, nil
}

// startMade connects the streams of a container and starts it.
func (c *Client) startMade(
	ctx context.Context, made container.CreateResponse, stderr func([]byte),
) (*Container, error) {
	if len(made.Warnings) > 0 {
		return nil, fmt.Errorf("the Docker daemon does not enforce all requested settings: %s",
			strings.Join(made.Warnings, "; "))
	}
	began := time.Now()

	// The streams outlive the start, and ctx bounds only the start.
	long := context.WithoutCancel(ctx)
	in := container.AttachOptions{Stream: true, Stdin: true, Stdout: true}
	out, err := c.attach(long, made.ID, in, streamOut)
	if err != nil {
		return nil, err
	}
	errs, err := c.attach(
		long,
		made.ID,
		container.AttachOptions{Stream: true, Stderr: true},
		streamErr,
	)
	if err != nil {
		return nil, errors.Join(err, out.conn.Close())
	}

	joined := joinStreams(out, errs, stderr)
	if err := c.api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return nil, errors.Join(c.explain("start a container", err), joined.Close())
	}
	return &Container{ID: made.ID, streams: joined, client: c, began: began}, nil
}

// attach connects one stream of a container.
func (c *Client) attach(
	ctx context.Context, id string, options container.AttachOptions, which byte,
) (*pieces, error) {
	hijacked, err := c.api.ContainerAttach(ctx, id, options)
	if err != nil {
		return nil, c.explain("connect to a container", err)
	}
	return &pieces{conn: hijacked.Conn, in: hijacked.Reader, which: which}, nil
}

// Signal sends a signal to the first process.
func (c *Container) Signal(ctx context.Context, signal string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	err := c.client.api.ContainerKill(ctx, c.ID, signal)
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) { // a conflict means that it is not running
		return ErrGone
	}
	if err != nil {
		return c.client.explain("signal a container", err)
	}
	return nil
}

// Wait waits until the container has ended and returns its exit code.
func (c *Container) Wait(ctx context.Context) (int, error) {
	results, errs := c.client.api.ContainerWait(ctx, c.ID, container.WaitConditionNotRunning)
	select {
	case result := <-results:
		return int(result.StatusCode), nil
	case err := <-errs:
		return -1, c.client.explain("wait for a container", err)
	}
}

// Export returns the container's file tree as a tar stream.
func (c *Container) Export(ctx context.Context) (io.ReadCloser, error) {
	files, err := c.client.api.ContainerExport(ctx, c.ID)
	if err != nil {
		return nil, c.client.explain("take the files out of a container", err)
	}
	return files, nil
}

// Put writes the files of a tar stream into the container. The container's root must be writable.
func (c *Container) Put(ctx context.Context, files io.Reader) error {
	err := c.client.api.CopyToContainer(ctx, c.ID, "/", files, container.CopyToContainerOptions{})
	if err != nil {
		return c.client.explain("put files into a container", err)
	}
	return nil
}

// End kills and removes the container and closes its streams.
func (c *Container) End(ctx context.Context) error {
	return errors.Join(c.client.Remove(ctx, c.ID), c.Close())
}

// Remove kills and removes a container. It returns nil if the container does not exist.
func (c *Client) Remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()

	for {
		err := c.api.ContainerRemove(ctx, id, container.RemoveOptions{
			Force: true, RemoveVolumes: true,
		})
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		if !errdefs.IsConflict(err) {
			return c.explain("remove a container", err)
		}

		// A removal is already under way, and the container exists until its end.
		select {
		case <-ctx.Done():
			return c.explain("remove a container", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Listed is a container that List returns.
type Listed struct {
	ID      string
	Labels  map[string]string
	Running bool
}

// List returns the containers that have all of the labels, including containers that have ended.
func (c *Client) List(ctx context.Context, labels map[string]string) ([]Listed, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	args := filters.NewArgs()
	for key, value := range labels {
		args.Add("label", key+"="+value)
	}
	found, err := c.api.ContainerList(ctx, container.ListOptions{All: true, Filters: args})
	if err != nil {
		return nil, c.explain("list containers", err)
	}

	list := make([]Listed, 0, len(found))
	for f := range slices.Values(found) {
		running := f.State == container.StateRunning
		list = append(list, Listed{ID: f.ID, Labels: f.Labels, Running: running})
	}
	return list, nil
}
