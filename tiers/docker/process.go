package docker

import (
	"context"
	_ "embed" // the first process
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/tiers"
)

//go:embed guest.py
var guestSource string

// guestOptions configure the runtime to use two pipes and the guest's first process.
const guestOptions = "output=4, life=life[1], announce=announce, hold=hold, " +
	"stock='/usr/lib/rlm/kernel', packages='" + dockerapi.PackageFolder + "'"

// ownMemory is a container's memory in addition to the snippet's, in bytes, for the first process,
// the runtime, and files in memory.
const ownMemory = 64 << 20

// treeMemory returns the memory limit of all processes of a container together, in bytes,
// rounded to whole pages. It allows twice the snippet's memory: the keeper is a copy of the
// session's process, and pages that the process writes exist in both.
func treeMemory(limit int64) int64 { return roundToPages(2*limit + ownMemory) }

func roundToPages(bytes int64) int64 {
	const page = 64 << 10 // the largest page size of any kernel
	return (bytes + page - 1) / page * page
}

// process is a container with the runtime loaded.
type process struct {
	container
	connection *session.Connection
	listener   net.Listener // the proxy's; nil without one

	processor *processor
}

var (
	_ pykernel.Process    = (*process)(nil)
	_ session.Interrupter = (*process)(nil)
	_ session.Processor   = (*process)(nil)
)

// needs are the properties that differ between the containers of sessions.
type needs struct {
	limits tiers.Limits
	files  *shown
	out    bool
	proxy  *egress.Proxy // nil without allowed hosts
	labels map[string]string
}

// start starts a container and loads the runtime.
func (t *tier) start(ctx context.Context, n needs) (*process, error) {
	setup, err := t.ready(ctx)
	if err == nil {
		err = setup.lacks[tiers.Python]
	}
	if err != nil {
		return nil, err
	}
	if n.proxy != nil && setup.facts.GVisor {
		return nil, reject("a container with a separate kernel (runsc) cannot reach allowed hosts")
	}

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p := &process{}
	spec := t.spec(&setup, t.recipe, setup.image.ID, n)
	spec.Command = []string{
		"/usr/bin/python3", "-I", "-X", "utf8", "-c",
		guestSource + pykernel.NativeLoader(guestOptions),
	}

	spec.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=/sandbox", "LANG=C.UTF-8", "TMPDIR=/tmp",
		"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MALLOC_ARENA_MAX=4",
		fmt.Sprint("RLM_MEMORY=", n.limits.Memory),
	}
	if setup.image.Modules != "" {
		// PYTHONPATH is for child processes; the first process ignores it. Joblib's processes would
		// ignore it, too, and wait for one another; without them, joblib runs in this process.
		spec.Env = append(spec.Env, "PYTHONPATH="+dockerapi.PackageFolder, "JOBLIB_MULTIPROCESSING=0")
	}
	spec.Memory, spec.Processes = treeMemory(n.limits.Memory), processes
	var way *gate

	if n.proxy != nil {
		if way, err = newGate(); err != nil {
			return nil, err
		}
		defer func() { _ = way.close() }() // a failure leaves an empty folder
		way.spec(&spec)
	}

	if err := t.boot(ctx, &p.container, spec); err != nil {
		return nil, err
	}
	p.processor = newProcessor(p.computed)
	end := p.end
	p.end = sync.OnceValue(func() error {
		p.processor.stop()
		if p.listener != nil {
			_ = p.listener.Close() // all its clients are in the container
		}
		return end()
	})

	if way != nil {
		if p.listener, err = way.listener(ctx); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		n.proxy.Serve(p.listener)
	}

	if p.connection, _, err = pykernel.Load(ctx, p.box, p, nil); err != nil {
		err = fmt.Errorf("%w: %s", err, p.report.text())
	} else {
		err = t.verify(ctx, &p.container, &setup, n)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}

	return p, nil
}

// wanted returns the wall that a container must have.
func (n *needs) wanted(f dockerapi.Facts, user int) wanted {
	w := wanted{user: user, ownKernel: f.GVisor, proxy: n.proxy != nil, folders: n.files.folders}
	if ownMachine(f) {
		w.inodes = n.files.inodes
	}
	return w
}

// ownMachine reports whether containers run on this program's kernel. In a virtual machine,
// files have different inode numbers.
func ownMachine(f dockerapi.Facts) bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return err == nil && strings.TrimSpace(string(release)) == f.Kernel
}

// reject declines a session with allowed hosts.
func reject(reason string) error {
	return &tiers.RejectedError{
		Tier:    Name,
		Missing: string(tiers.FeatureSockets),
		Effects: tiers.EffectsNeverRan,
		Reason:  reason,
	}
}

// processes bounds processes and threads together. Pools of a hundred threads are common.
const processes = 128

// Connection returns the connection to the runtime in the container.
func (p *process) Connection() *session.Connection { return p.connection }

// Interrupt raises KeyboardInterrupt in the guest. It returns after the signal has arrived, so that
// the signal cannot hit the next snippet.
func (p *process) Interrupt() { p.order("SIGINT") }

// Kill ends all processes of the guest except the keeper.
func (p *process) Kill(keeper int) {
	if keeper != 0 {
		p.order("SIGUSR1") // the first process spares the keeper
		return
	}
	p.killed = true
	_ = p.end() // Close reports the error
}

// order signals the first process and waits until it has completed the order.
func (p *process) order(signal string) {
	if p.lost {
		return // do not wait for the daemon again
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	select {
	case <-p.report.done: // a late answer to an earlier order
	default:
	}

	err := p.box.Signal(ctx, signal)
	if err == nil {
		err = p.awaitAnswer(ctx)
	}
	if err != nil && !errors.Is(err, dockerapi.ErrGone) {
		p.lost = true
		p.fault = p.explainSilence(err)
	}
}

// awaitAnswer waits until the first process has completed an order.
func (p *process) awaitAnswer(ctx context.Context) error {
	select {
	case <-p.report.done:
		return nil
	case <-p.connection.Gone():
		return dockerapi.ErrGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Processor returns the processor time of all processes of the container, as of the daemon's
// last answer.
func (p *process) Processor() time.Duration { return p.processor.time() }

func (p *process) computed(ctx context.Context) (time.Duration, error) {
	usage, err := p.box.Usage(ctx)
	return usage.Processor, err
}

// Peak returns the session's highest memory use, in bytes.
func (p *process) Peak(own int64) int64 {
	if own > 0 {
		return own
	}
	return p.peak
}

// alive reports whether the container is still running.
func (p *process) alive() bool {
	select {
	case <-p.connection.Gone():
		return false
	default:
		return true
	}
}

// Close ends the container and waits for it.
func (p *process) Close() error {
	err := p.end()
	if p.connection != nil {
		_ = p.connection.Close() // its other end is gone
	}
	return err
}
