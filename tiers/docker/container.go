package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// Deadlines of operations for which callers set no deadline.
const (
	startTimeout = 60 * time.Second
	orderTimeout = 5 * time.Second
	endTimeout   = 20 * time.Second
)

// container is one container for any guest. It holds the reports of its first process, and how the
// container ended.
type container struct {
	box       *dockerapi.Container
	report    report
	user      int    // its number
	limit     int64  // limit of its memory
	processes uint64 // at most

	refused uint64 // refused memory, by the kernel's last count
	ended   int    // processes killed by the kernel for memory
	peak    int64
	fault   error // why it ended, unless the guest ended it
	lost    bool  // the daemon missed the deadline of an order
	killed  bool  // the host ended it
	end     func() error
}

// report collects the container's standard error. The first process writes a line about the wall,
// and then one byte for each order that it completed.
type report struct {
	mu    sync.Mutex
	said  []byte
	line  chan []byte // receives the first line
	lined bool
	done  chan struct{} // has room for one
}

const (
	orderDone = 6
	// keptSaid bounds the output kept for messages, in bytes.
	keptSaid = 4 << 10
)

func (r *report) write(said []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lined && bytes.IndexByte(said, orderDone) >= 0 {
		select {
		case r.done <- struct{}{}:
		default:
		}
	}

	most := keptSaid
	if !r.lined {
		most = maxAttestation + 1
	}
	r.said = append(r.said, said[:max(0, min(len(said), most-len(r.said)))]...)
	line, rest, found := bytes.Cut(r.said, []byte{'\n'})
	if !r.lined && (found || len(r.said) > maxAttestation) {
		r.lined = true
		r.line <- line
		r.said = append([]byte(nil), rest...)
	}
}

func (r *report) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimSpace(string(r.said))
}

// spec returns the common part of all containers of the tier.
func (t *tier) spec(s *setup, recipe images.Recipe, image string, n needs) dockerapi.Spec {
	labels := t.labels()
	labels[labelRecipe] = recipe.Hash
	for name, value := range n.labels {
		labels[labelSession+name] = value
	}
	return dockerapi.Spec{
		Name:  "rlm-" + rand.Text(),
		User:  s.facts.NewUser(),
		Image: image, Labels: labels, CPUs: t.options.CPUs, Mounts: n.files.mounts,
		Folders: n.files.folders, Out: n.out, GVisor: s.facts.GVisor,
		Systemd: s.facts.Systemd, AppArmor: s.facts.AppArmor, Off: t.off,
	}
}

// boot starts a container. Afterwards, the caller must end it with container.end.
func (t *tier) boot(ctx context.Context, c *container, spec dockerapi.Spec) error {
	c.limit, c.user = spec.Memory, spec.User
	c.processes = uint64(spec.Processes) //nolint:gosec // a small number of ours
	c.report = report{line: make(chan []byte, 1), done: make(chan struct{}, 1)}
	var err error
	if c.box, err = t.docker.Start(ctx, spec, c.report.write); err != nil {
		t.leave(spec.Name) // it may exist
		return err
	}

	c.end = sync.OnceValue(func() error {
		if c.lost { // do not wait for the daemon again
			t.leave(c.box.ID)
			t.forget() // so that the next start checks whether it answers
			return c.box.Close()
		}
		own, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		err := c.box.End(own)
		if err != nil {
			t.leave(c.box.ID)
		}

		return err
	})

	return nil
}

// verify checks a container's wall, unless a test left layers out. It reads the attestation of the
// first process, and the limits that only the kernel can report.
func (t *tier) verify(ctx context.Context, c *container, s *setup, n needs) error {
	var line []byte
	select {
	case line = <-c.report.line:
	case <-ctx.Done():
		return fmt.Errorf(
			"a container did not attest its wall: %w",
			errors.Join(context.Cause(ctx), c.said()),
		)
	}

	a, err := readAttestation(line)
	if err != nil {
		return err
	}
	if holes := a.holes(n.wanted(s.facts, c.user)); len(holes) > 0 && len(t.off) == 0 {
		return fmt.Errorf("the wall of a container has gaps: %s", strings.Join(holes, "; "))
	}

	return t.verifyLimits(ctx, c)
}

// said returns the other output of the first process as an error, or nil if there is none.
func (c *container) said() error {
	if text := c.report.text(); text != "" {
		return errors.New(text)
	}
	return nil
}

// verifyLimits checks, once for each daemon, the limits that the first process cannot read from
// inside.
func (t *tier) verifyLimits(ctx context.Context, c *container) error {
	t.mu.Lock()
	done := t.verified || len(t.off) > 0
	t.mu.Unlock()
	if done {
		return nil
	}

	usage, err := c.box.Usage(ctx)
	switch {
	case err != nil:
		return err
	case usage.Limit < c.limit:
		return fmt.Errorf("a container cannot have %s of memory: the Docker daemon's machine has %s; lower the limit",
			quantity.IBytes(c.limit), quantity.IBytes(usage.Limit))
	case usage.Limit != c.limit:
		return fmt.Errorf(
			"the wall of a container has gaps: its memory is limited to %d bytes, not %d",
			usage.Limit, c.limit,
		)
	case usage.Processes != c.processes:
		return fmt.Errorf(
			"the wall of a container has gaps: its processes are limited to %d, not %d",
			usage.Processes, c.processes,
		)
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	t.verified = true
	return nil
}

// explainSilence returns why an order was not carried out, or nil if the guest is the reason.
func (c *container) explainSilence(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	state, asked := c.box.State(ctx)
	switch {
	case asked != nil:
		c.lost = c.lost || !errors.Is(asked, dockerapi.ErrGone)
		return fmt.Errorf("the container cannot be reached: %w", errors.Join(err, asked))
	case state.Paused:
		return errors.New("the container was paused from outside")
	}

	return nil // the guest keeps its first process from working
}

// OutOfMemory reports whether the kernel killed a process of the container for its memory since the
// last call. Only a bad end can be due to such a kill.
func (c *container) OutOfMemory(bad bool) bool {
	if !bad || c.lost || c.killed {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	state, err := c.box.State(ctx)
	switch {
	case errors.Is(err, dockerapi.ErrGone):
		c.fault = errors.New("the container was removed from outside")
		return false
	case err != nil:
		return false // the next order reports the error
	case !state.Running:
		oom := state.OutOfMemory || state.ExitCode == exitKilled && c.hasNewKills(ctx)
		c.findFault(state, oom)
		return oom
	}

	usage, err := c.box.Usage(ctx)
	if err != nil {
		return false // as above
	}
	was := c.refused
	c.refused, c.peak = usage.Refused, min(usage.Peak, c.limit)
	const near = 1 << 20
	if usage.Refused == was && usage.Peak < c.limit-near {
		return false // its memory never came near the limit
	}

	return c.hasNewKills(ctx) || usage.Refused > was
}

// The exit codes of a container that its guest cannot cause, because the first process sets the
// exit code.
const (
	// exitKilled is the exit code of a container whose first process was killed.
	exitKilled = 128 + 9
	// exitUnknown is the code that a daemon records if it was down when the container ended.
	exitUnknown = 255
)

// killReportTimeout bounds the wait until the daemon reports a kill by the kernel.
const killReportTimeout = 2 * time.Second

// hasNewKills reports whether, according to the daemon, the kernel killed a process for its
// memory since the last call.
func (c *container) hasNewKills(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, killReportTimeout)
	defer cancel()
	n, err := c.box.AwaitOOMKills(ctx, c.ended+1)
	if err != nil {
		c.ended = max(c.ended, n)
		return false // no report: the session has its result either way
	}

	c.ended = n
	return true
}

// findFault records why a container ended, unless its guest ended it.
func (c *container) findFault(state dockerapi.State, oom bool) {
	switch {
	case oom || c.fault != nil:
	case state.Error != "":
		c.fault = fmt.Errorf("the container failed: %s", state.Error)
	case state.ExitCode == exitKilled: // from inside, the first process cannot be killed
		c.fault = errors.New("the container was killed from outside")
	case state.ExitCode == exitUnknown:
		c.fault = errors.New("the container ended while its daemon was away")
	}
}

// Fault returns why the container ended, or nil if the snippet ended it.
func (c *container) Fault() error { return c.fault }
