package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // the first process
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/daemon"
	"github.com/rlmhq/rlm/internal/egress"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

//go:embed guest.py
var guestSource string

// guestOptions make the runtime use two pipes and the guest's first process.
const guestOptions = "output=4, life=life[1], announce=announce, hold=hold"

// Deadlines for what has no other.
const (
	startTimeout = 60 * time.Second
	orderTimeout = 2 * time.Second
	endTimeout   = 20 * time.Second
)

// What a container needs beyond the snippet's own memory: the first process and
// the runtime, and the files that it keeps in memory.
const ownMemory = 64 << 20

// treeMemory is what all processes of a container may have together. The keeper is
// a copy of the session's process: what that writes anew both have.
// The kernel counts whole pages.
func treeMemory(limit int64) int64 {
	const page = 64 << 10 // the largest that a kernel has
	return (2*limit + ownMemory + page - 1) / page * page
}

// process is a container with the runtime loaded.
type process struct {
	box      *daemon.Container
	remote   *pykernel.Remote
	report   report
	listener net.Listener // of the way out, nil for none
	limit    int64        // of the container's memory

	refused uint64 // memory, as the kernel had counted it last
	ended   int    // processes, by the kernel for memory
	peak    int64
	fault   error // why it ended, if we know that it was not the guest
	lost    bool  // the daemon has not carried out an order in time
	killed  bool  // by us
	end     func() error

	processor *processor
}

var (
	_ pykernel.Process   = (*process)(nil)
	_ pykernel.Processor = (*process)(nil)
)

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

// needs are what the containers of sessions differ in.
type needs struct {
	limits tiers.Limits
	files  *shown
	out    bool
	proxy  *egress.Proxy // nil for no way out
}

// start starts a container and loads the runtime.
func (t *Tier) start(ctx context.Context, n needs) (*process, error) {
	setup, err := t.ready(ctx)
	if err != nil {
		return nil, err
	}
	if n.proxy != nil && setup.facts.GVisor {
		return nil, reject("a kernel of its own cannot hand a listener over")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p := &process{limit: treeMemory(n.limits.Memory)}
	p.report = report{line: make(chan []byte, 1), done: make(chan struct{}, 1)}
	spec := daemon.Spec{
		Name: "rlm-" + rand.Text(), Image: setup.image.ID,
		Command: []string{"/usr/bin/python3", "-I", "-X", "utf8", "-c", guestSource + pykernel.NativeLoader(guestOptions)},
		Env: []string{
			"PATH=/usr/bin:/bin", "HOME=/sandbox", "LANG=C.UTF-8", "TMPDIR=/tmp", "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1",
			"MALLOC_ARENA_MAX=4", fmt.Sprint("RLM_MEMORY=", n.limits.Memory),
		},
		Labels: t.labels(), Memory: p.limit, CPUs: t.options.CPUs, Processes: processes, Mounts: n.files.mounts, Folders: n.files.folders, Out: n.out,
		GVisor: setup.facts.GVisor, Systemd: setup.facts.Systemd, AppArmor: setup.facts.AppArmor, Off: t.off,
	}
	var way *gate
	if n.proxy != nil {
		if way, err = newGate(); err != nil {
			return nil, err
		}
		defer func() { _ = way.close() }() // what is left of it is an empty folder
		way.spec(&spec)
	}
	if p.box, err = t.docker.Start(ctx, spec, p.report.write); err != nil {
		t.leave(spec.Name) // for all we know
		return nil, err
	}
	p.processor = newProcessor(p.computed)
	p.end = sync.OnceValue(func() error {
		p.processor.stop()
		if p.listener != nil {
			_ = p.listener.Close() // whoever connects is inside, and ends
		}
		if p.lost { // the daemon would only be waited for once more
			t.leave(p.box.ID)
			t.forget() // so that the next start asks whether it answers
			return p.box.Close()
		}
		own, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		err := p.box.End(own)
		if err != nil {
			t.leave(p.box.ID)
		}
		return err
	})
	if way != nil {
		if p.listener, err = way.listener(ctx); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		n.proxy.Serve(p.listener)
	}
	wall := wanted{ownKernel: setup.facts.GVisor, proxy: n.proxy != nil, folders: n.files.folders}
	if ownMachine(setup.facts) {
		wall.inodes = n.files.inodes
	}
	if err = p.load(ctx, wall, len(t.off) > 0); err == nil {
		err = t.weigh(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// ownMachine reports whether containers run on this program's kernel. Elsewhere, in a
// virtual machine, files have other numbers.
func ownMachine(f daemon.Facts) bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return err == nil && strings.TrimSpace(string(release)) == f.Kernel
}

// reject declines a session that wants a way out.
func reject(reason string) error {
	return &tiers.RejectedError{Tier: Name, Missing: string(tiers.FeatureSockets), Effects: tiers.EffectsNeverRan, Reason: reason}
}

// weigh looks, once for each daemon, whether the kernel has the limits that cannot be
// seen from inside.
func (t *Tier) weigh(ctx context.Context, p *process) error {
	t.mu.Lock()
	done := t.weighed || len(t.off) > 0
	t.mu.Unlock()
	if done {
		return nil
	}
	usage, err := p.box.Usage(ctx)
	switch {
	case err != nil:
		return err
	case usage.Limit != p.limit:
		return fmt.Errorf("the wall of a container is not whole: its memory is limited to %d bytes, not %d", usage.Limit, p.limit)
	case usage.Processes != processes:
		return fmt.Errorf("the wall of a container is not whole: its processes are limited to %d, not %d", usage.Processes, processes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.weighed = true
	return nil
}

// processes bounds processes and threads together.
const processes = 64

// load loads the runtime, and looks whether the wall stands, unless a test has left
// layers out.
func (p *process) load(ctx context.Context, wall wanted, open bool) error {
	var err error
	if p.remote, err = pykernel.NewRemote(ctx, p.box, p); err != nil {
		return fmt.Errorf("%w: %s", err, p.report.text())
	}
	var line []byte
	select {
	case line = <-p.report.line:
	case <-ctx.Done():
		return fmt.Errorf("a container does not say what its wall is: %w", context.Cause(ctx))
	}
	a, err := readAttestation(line)
	if err != nil {
		return err
	}
	if holes := a.holes(wall); len(holes) > 0 && !open {
		return fmt.Errorf("the wall of a container is not whole: %s", strings.Join(holes, "; "))
	}
	return nil
}

// Remote is the runtime in the container.
func (p *process) Remote() *pykernel.Remote { return p.remote }

// Interrupt raises KeyboardInterrupt in the guest. It returns when the signal has
// arrived, so that none is left for the next snippet.
func (p *process) Interrupt() { p.order("SIGINT") }

// Kill ends all processes of the guest but the keeper.
func (p *process) Kill(keeper int) {
	if keeper != 0 {
		p.order("SIGUSR1") // the first process knows which
		return
	}
	p.killed = true
	_ = p.end() // Close reports what went wrong
}

// order has the first process do something, and waits until it has.
func (p *process) order(signal string) {
	if p.lost {
		return // it would only wait once more
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	select {
	case <-p.report.done: // of an order that took too long
	default:
	}
	err := p.box.Signal(ctx, signal)
	if err == nil {
		err = p.answered(ctx)
	}
	if err != nil && !errors.Is(err, daemon.ErrGone) {
		p.lost = true
		p.fault = p.trouble(err)
	}
}

func (p *process) answered(ctx context.Context) error {
	select {
	case <-p.report.done:
		return nil
	case <-p.remote.Gone():
		return daemon.ErrGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// trouble says why an order was not carried out.
func (p *process) trouble(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	state, asked := p.box.State(ctx)
	switch {
	case asked != nil:
		return fmt.Errorf("the container cannot be reached: %w", errors.Join(err, asked))
	case state.Paused:
		return errors.New("somebody has paused the container")
	}
	return nil // the guest keeps its first process from working: its own doing
}

// OutOfMemory reports whether the kernel has ended something in the container for
// its memory since the last time. It is asked only after a bad end: that tells an
// end by the kernel from one of the guest's own.
func (p *process) OutOfMemory(bad bool) bool {
	if !bad || p.lost || p.killed {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	state, err := p.box.State(ctx)
	switch {
	case errors.Is(err, daemon.ErrGone):
		p.fault = errors.New("somebody has removed the container")
		return false
	case err != nil:
		return false // the next order will tell
	case !state.Running:
		oom := state.OutOfMemory || state.ExitCode == exitKilled && p.killings(ctx)
		p.judge(state, oom)
		return oom
	}
	usage, err := p.box.Usage(ctx)
	if err != nil {
		return false // as above
	}
	was := p.refused
	p.refused, p.peak = usage.Refused, min(usage.Peak, p.limit)
	const near = 1 << 20
	if usage.Refused == was && usage.Peak < p.limit-near {
		return false // it has never come near its limit
	}
	return p.killings(ctx) || usage.Refused > was
}

// exitKilled is the exit code of a container whose first process was killed.
const exitKilled = 128 + 9

// heardIn is how long the daemon may take to hear of what the kernel has done.
const heardIn = 500 * time.Millisecond

// killings reports whether the daemon hears of a process that the kernel has ended
// since the last time.
func (p *process) killings(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, heardIn)
	defer cancel()
	n, err := p.box.Killings(ctx, p.ended+1)
	if err != nil {
		p.ended = max(p.ended, n)
		return false // it is not heard of; whoever is wrong, the session has its result
	}
	p.ended = n
	return true
}

// judge finds out who ended a container.
func (p *process) judge(state daemon.State, oom bool) {
	switch {
	case oom || p.fault != nil:
	case state.Error != "":
		p.fault = fmt.Errorf("the container failed: %s", state.Error)
	case state.ExitCode == exitKilled: // nobody inside can kill its first process
		p.fault = errors.New("somebody has killed the container")
	}
}

// Processor is the time that all processes of the container have computed, as the
// daemon said it last.
func (p *process) Processor() time.Duration { return p.processor.time() }

func (p *process) computed(ctx context.Context) (time.Duration, error) {
	usage, err := p.box.Usage(ctx)
	return usage.Processor, err
}

// Peak is the most memory that the session has had.
func (p *process) Peak(own int64) int64 {
	if own > 0 {
		return own
	}
	return p.peak
}

// Fault is why the container ended, if that was no doing of the snippet's.
func (p *process) Fault() error { return p.fault }

// alive reports whether the container has not ended yet.
func (p *process) alive() bool {
	select {
	case <-p.remote.Gone():
		return false
	default:
		return true
	}
}

// Close ends the container and waits for it.
func (p *process) Close() error {
	err := p.end()
	if p.remote != nil {
		_ = p.remote.Close() // the connection is closed
	}
	return err
}
