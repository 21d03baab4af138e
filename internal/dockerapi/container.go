package dockerapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// Container is a container that has been started.
type Container struct {
	// ID is the daemon's name for it.
	ID string
	// Streams are its standard streams.
	*Streams
	client *Client
	began  time.Time
}

// Errors that callers tell apart.
var (
	// ErrNoImage: the image is not there.
	ErrNoImage = errors.New("there is no such image")
	// ErrGone: the container is not there, or has ended.
	ErrGone = errors.New("the container is gone")
)

// Start makes a container, connects its streams and starts it. What it writes to
// its standard error goes to stderr, on a goroutine that ends with the streams.
// The context bounds the start alone. After an error nothing is left, except
// where the daemon has not answered: then remove the Spec's name later.
func (c *Client) Start(ctx context.Context, spec Spec, stderr func([]byte)) (*Container, error) {
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	config, host, net := hardened(spec)
	made, err := c.api.ContainerCreate(ctx, config, host, net, nil, spec.Name)
	if err != nil {
		if errdefs.IsNotFound(err) {
			return nil, fmt.Errorf("cannot create a container of %s: %w", spec.Image, ErrNoImage)
		}
		return nil, c.explain("create a container", err)
	}
	started, err := c.start(ctx, made.ID, made.Warnings, stderr)
	if err != nil {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeIn)
		defer cancel()
		return nil, errors.Join(err, c.Remove(own, made.ID))
	}
	return started, nil
}

func (c *Client) start(ctx context.Context, id string, warnings []string, stderr func([]byte)) (*Container, error) {
	if len(warnings) > 0 {
		return nil, fmt.Errorf("the Docker daemon does not enforce all that was asked for: %s", strings.Join(warnings, "; "))
	}
	began := time.Now()
	// The streams outlive the start that ctx bounds.
	long := context.WithoutCancel(ctx)
	in, err := c.attach(long, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true}, streamOut)
	if err != nil {
		return nil, err
	}
	errs, err := c.attach(long, id, container.AttachOptions{Stream: true, Stderr: true}, streamErr)
	if err != nil {
		return nil, errors.Join(err, in.conn.Close())
	}
	streams := join(in, errs, stderr)
	if err := c.api.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return nil, errors.Join(c.explain("start a container", err), streams.Close())
	}
	return &Container{ID: id, Streams: streams, client: c, began: began}, nil
}

func (c *Client) attach(ctx context.Context, id string, options container.AttachOptions, which byte) (*pieces, error) {
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
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) { // no container, or none that runs
		return ErrGone
	}
	if err != nil {
		return c.client.explain("signal a container", err)
	}
	return nil
}

// State is how a container fares.
type State struct {
	Running, Paused bool
	// ExitCode is set when it has ended; OutOfMemory says that the kernel ended a
	// process of it for its memory, as far as the daemon has heard.
	ExitCode    int
	OutOfMemory bool
	// Error is the daemon's own trouble with it.
	Error string
}

// State asks how the container fares.
func (c *Container) State(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	is, err := c.client.api.ContainerInspect(ctx, c.ID)
	if errdefs.IsNotFound(err) {
		return State{}, ErrGone
	}
	if err != nil {
		return State{}, c.client.explain("look at a container", err)
	}
	if is.ContainerJSONBase == nil || is.State == nil {
		return State{}, errors.New("cannot look at a container: the daemon says nothing of its state")
	}
	s := is.State
	return State{Running: s.Running, Paused: s.Paused, ExitCode: s.ExitCode, OutOfMemory: s.OOMKilled, Error: s.Error}, nil
}

// Usage is what the kernel counts for a container.
type Usage struct {
	// Limit and Peak are of memory, in bytes; the kernel of cgroup v2 tells no peak,
	// it is then what is used now.
	Limit, Peak int64
	// Refused counts how often memory was refused: on cgroup v2 by killing.
	Refused uint64
	// Processes is the limit of processes.
	Processes uint64
	// Processor is the time that all processes have computed.
	Processor time.Duration
}

// maxStats bounds the answer to Usage.
const maxStats = 4 << 20

// Usage asks the kernel, by the daemon.
func (c *Container) Usage(ctx context.Context) (Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := c.client.api.ContainerStatsOneShot(ctx, c.ID)
	if errdefs.IsNotFound(err) {
		return Usage{}, ErrGone
	}
	if err != nil {
		return Usage{}, c.client.explain("ask what a container uses", err)
	}
	defer answer.Body.Close()
	var stats container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxStats)).Decode(&stats); err != nil {
		return Usage{}, fmt.Errorf("cannot understand what a container uses: %w", err)
	}
	m := stats.MemoryStats
	return Usage{
		Limit: int64(m.Limit), Peak: int64(max(m.MaxUsage, m.Usage)), Refused: m.Failcnt,
		Processes: stats.PidsStats.Limit, Processor: time.Duration(min(stats.CPUStats.CPUUsage.TotalUsage, math.MaxInt64)),
	}, nil
}

// Killings waits until the daemon has heard that the kernel has ended at least so
// many processes of the container for its memory, and counts them. If the context
// ends first, that is the error.
func (c *Container) Killings(ctx context.Context, least int) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the messages
	messages, errs := c.client.api.Events(ctx, events.ListOptions{
		Since:   strconv.FormatInt(c.began.Unix()-1, 10),
		Filters: filters.NewArgs(filters.Arg("container", c.ID), filters.Arg("event", string(events.ActionOOM))),
	})
	for n := 0; ; n++ {
		if n >= least {
			return n, nil
		}
		select {
		case <-messages:
		case err := <-errs:
			return n, c.client.explain("ask what has become of a container", err)
		}
	}
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

// Export returns the container's files as a tar stream.
func (c *Container) Export(ctx context.Context) (io.ReadCloser, error) {
	files, err := c.client.api.ContainerExport(ctx, c.ID)
	if err != nil {
		return nil, c.client.explain("take the files out of a container", err)
	}
	return files, nil
}

// End kills and removes the container and closes its streams.
func (c *Container) End(ctx context.Context) error {
	return errors.Join(c.client.Remove(ctx, c.ID), c.Close())
}

// Remove kills and removes a container. One that is not there is no error.
func (c *Client) Remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	for {
		err := c.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		if !errdefs.IsConflict(err) { // somebody else is removing it: until that has worked, it is there
			return c.explain("remove a container", err)
		}
		select {
		case <-ctx.Done():
			return c.explain("remove a container", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Listed is a container as List finds it.
type Listed struct {
	ID      string
	Labels  map[string]string
	Created time.Time
	Running bool
}

// List lists the containers that have all of the labels, those that have ended
// too.
func (c *Client) List(ctx context.Context, labels map[string]string) ([]Listed, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := filters.NewArgs()
	for _, label := range sorted(labels) {
		args.Add("label", label)
	}
	found, err := c.api.ContainerList(ctx, container.ListOptions{All: true, Filters: args})
	if err != nil {
		return nil, c.explain("list containers", err)
	}
	var list []Listed
	for i := range found {
		f := &found[i]
		list = append(list, Listed{ID: f.ID, Labels: f.Labels, Created: time.Unix(f.Created, 0), Running: f.State == container.StateRunning})
	}
	return list, nil
}
