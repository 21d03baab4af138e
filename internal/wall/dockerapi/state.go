package dockerapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// State is the state of a container.
type State struct {
	Running, Paused bool
	// ExitCode is set once the container has ended.
	ExitCode int
	// OutOfMemory reports whether the kernel killed one of the container's processes for lack of
	// memory, according to the daemon.
	OutOfMemory bool
	// Error is the daemon's error message about the container.
	Error string
}

// State requests the container's state from the daemon.
func (c *Container) State(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	is, err := c.client.api.ContainerInspect(ctx, c.ID)
	if errdefs.IsNotFound(err) {
		return State{}, ErrGone
	}
	if err != nil {
		return State{}, c.client.explain("inspect a container", err)
	}
	if is.ContainerJSONBase == nil || is.State == nil {
		return State{}, errors.New(
			"cannot inspect a container: the daemon does not report its state",
		)
	}

	return State{
		Running:     is.State.Running,
		Paused:      is.State.Paused,
		ExitCode:    is.State.ExitCode,
		OutOfMemory: is.State.OOMKilled,
		Error:       is.State.Error,
	}, nil
}

// Usage holds the kernel's counters for a container.
type Usage struct {
	// Limit and Peak describe memory, in bytes. On cgroup v2, the kernel reports no peak, so Peak
	// is the current use.
	Limit, Peak int64
	// Refused counts refused allocations. On cgroup v2, the kernel kills a process instead.
	Refused uint64
	// Processes is the limit of processes.
	Processes uint64
	// Processor is the processor time of all processes.
	Processor time.Duration
}

// maxStats is the longest answer that Usage reads, in bytes.
const maxStats = 4 << 20

// Usage reads the kernel's counters through the daemon.
func (c *Container) Usage(ctx context.Context) (Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	answer, err := c.client.api.ContainerStatsOneShot(ctx, c.ID)
	if errdefs.IsNotFound(err) {
		return Usage{}, ErrGone
	}
	if err != nil {
		return Usage{}, c.client.explain("read the statistics of a container", err)
	}
	defer answer.Body.Close()

	var stats container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxStats)).Decode(&stats); err != nil {
		return Usage{}, fmt.Errorf("cannot decode the statistics of a container: %w", err)
	}
	m := stats.MemoryStats
	return Usage{
		Limit:     int64(m.Limit),
		Peak:      int64(max(m.MaxUsage, m.Usage)),
		Refused:   m.Failcnt,
		Processes: stats.PidsStats.Limit,
		Processor: time.Duration(min(stats.CPUStats.CPUUsage.TotalUsage, math.MaxInt64)),
	}, nil
}

// AwaitOOMKills waits until the daemon has reported a minimum number of processes of the container
// that the kernel killed for lack of memory, and returns their count. If the context ends first, it
// returns the context's error.
func (c *Container) AwaitOOMKills(ctx context.Context, least int) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream of messages

	messages, errs := c.client.api.Events(ctx, events.ListOptions{
		Since: strconv.FormatInt(c.began.Unix()-1, 10),
		Filters: filters.NewArgs(
			filters.Arg("container", c.ID), filters.Arg("event", string(events.ActionOOM))),
	})
	for n := 0; ; n++ {
		if n >= least {
			return n, nil
		}
		select {
		case <-messages:
		case err := <-errs:
			return n, c.client.explain("ask for the state of a container", err)
		}
	}
}
