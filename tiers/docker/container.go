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
	"github.com/rlmhq/rlm/internal/dockerapi"
)

// Deadlines for what has no other.
const (
	startTimeout = 60 * time.Second
	orderTimeout = 5 * time.Second
	endTimeout   = 20 * time.Second
)

// container is one container, whatever runs in it: what its first process reports,
// and how it ended.
type container struct {
	box       *dockerapi.Container
	report    report
	limit     int64  // of its memory
	processes uint64 // at most

	refused uint64 // memory, as the kernel had counted it last
	ended   int    // processes, by the kernel for memory
	peak    int64
	fault   error // why it ended, if we know that it was not the guest
	lost    bool  // the daemon has not carried out an order in time
	killed  bool  // by us
	end     func() error
}

// report is what the first process says on the container's standard error: a line
// about its wall, then one byte for each order that it has carried out.
type report struct {
	mu    sync.Mutex
	said  []byte
	line  chan []byte // gets the first line
	lined bool
	done  chan struct{} // has room for one
}

const (
	orderDone = 6
	// keptSaid is how much of what is no order's end is kept for messages.
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

// spec is what all containers of the tier have in common.
func (t *Tier) spec(s *setup, recipe images.Recipe, image string, n needs) dockerapi.Spec {
	labels := t.labels()
	labels[labelRecipe] = recipe.Hash
	for name, value := range n.labels {
		labels[labelSession+name] = value
	}
	return dockerapi.Spec{
		Name: "rlm-" + rand.Text(), Image: image, Labels: labels, CPUs: t.options.CPUs, Mounts: n.files.mounts, Folders: n.files.folders, Out: n.out,
		GVisor: s.facts.GVisor, Systemd: s.facts.Systemd, AppArmor: s.facts.AppArmor, Off: t.off,
	}
}

// boot starts a container. Its end is the caller's from then on, see container.end.
func (t *Tier) boot(ctx context.Context, c *container, spec dockerapi.Spec) error {
	c.limit, c.processes = spec.Memory, uint64(spec.Processes) //nolint:gosec // a small number of ours
	c.report = report{line: make(chan []byte, 1), done: make(chan struct{}, 1)}
	var err error
	if c.box, err = t.docker.Start(ctx, spec, c.report.write); err != nil {
		t.leave(spec.Name) // for all we know
		return err
	}
	c.end = sync.OnceValue(func() error {
		if c.lost { // the daemon would only be waited for once more
			t.leave(c.box.ID)
			t.forget() // so that the next start asks whether it answers
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

// trust looks whether a container's wall stands, unless a test has left layers out:
// by what its first process says, and by what only the kernel can.
func (t *Tier) trust(ctx context.Context, c *container, s *setup, n needs) error {
	var line []byte
	select {
	case line = <-c.report.line:
	case <-ctx.Done():
		return fmt.Errorf("a container does not say what its wall is: %w", errors.Join(context.Cause(ctx), c.said()))
	}
	a, err := readAttestation(line)
	if err != nil {
		return err
	}
	if holes := a.holes(n.wanted(s.facts)); len(holes) > 0 && len(t.off) == 0 {
		return fmt.Errorf("the wall of a container is not whole: %s", strings.Join(holes, "; "))
	}
	return t.weigh(ctx, c)
}

// said is what the first process has said besides, nil for nothing.
func (c *container) said() error {
	if text := c.report.text(); text != "" {
		return errors.New(text)
	}
	return nil
}

// weigh looks, once for each daemon, whether the kernel has the limits that cannot be
// seen from inside.
func (t *Tier) weigh(ctx context.Context, c *container) error {
	t.mu.Lock()
	done := t.weighed || len(t.off) > 0
	t.mu.Unlock()
	if done {
		return nil
	}
	usage, err := c.box.Usage(ctx)
	switch {
	case err != nil:
		return err
	case usage.Limit != c.limit:
		return fmt.Errorf("the wall of a container is not whole: its memory is limited to %d bytes, not %d", usage.Limit, c.limit)
	case usage.Processes != c.processes:
		return fmt.Errorf("the wall of a container is not whole: its processes are limited to %d, not %d", usage.Processes, c.processes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.weighed = true
	return nil
}

// trouble says why an order was not carried out.
func (c *container) trouble(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	state, asked := c.box.State(ctx)
	switch {
	case asked != nil:
		c.lost = c.lost || !errors.Is(asked, dockerapi.ErrGone)
		return fmt.Errorf("the container cannot be reached: %w", errors.Join(err, asked))
	case state.Paused:
		return errors.New("somebody has paused the container")
	}
	return nil // the guest keeps its first process from working: its own doing
}

// OutOfMemory reports whether the kernel has ended something in the container for
// its memory since the last time. It is asked only after a bad end: that tells an
// end by the kernel from one of the guest's own.
func (c *container) OutOfMemory(bad bool) bool {
	if !bad || c.lost || c.killed {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	state, err := c.box.State(ctx)
	switch {
	case errors.Is(err, dockerapi.ErrGone):
		c.fault = errors.New("somebody has removed the container")
		return false
	case err != nil:
		return false // the next order will tell
	case !state.Running:
		oom := state.OutOfMemory || state.ExitCode == exitKilled && c.killings(ctx)
		c.judge(state, oom)
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
		return false // it has never come near its limit
	}
	return c.killings(ctx) || usage.Refused > was
}

// exitKilled is the exit code of a container whose first process was killed.
const exitKilled = 128 + 9

// heardIn is how long the daemon may take to hear of what the kernel has done.
const heardIn = 2 * time.Second

// killings reports whether the daemon hears of a process that the kernel has ended
// since the last time.
func (c *container) killings(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, heardIn)
	defer cancel()
	n, err := c.box.AwaitOOMKills(ctx, c.ended+1)
	if err != nil {
		c.ended = max(c.ended, n)
		return false // it is not heard of; whoever is wrong, the session has its result
	}
	c.ended = n
	return true
}

// judge finds out who ended a container.
func (c *container) judge(state dockerapi.State, oom bool) {
	switch {
	case oom || c.fault != nil:
	case state.Error != "":
		c.fault = fmt.Errorf("the container failed: %s", state.Error)
	case state.ExitCode == exitKilled: // nobody inside can kill its first process
		c.fault = errors.New("somebody has killed the container")
	}
}

// Fault is why the container ended, if that was no doing of the snippet's.
func (c *container) Fault() error { return c.fault }
