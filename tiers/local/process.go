package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// Deadlines of operations for which callers set no deadline.
const (
	startTimeout = 30 * time.Second
	orderTimeout = 5 * time.Second
)

// What a jail needs in addition to the snippet's memory, in bytes.
const (
	ownMemory = 64 << 20 // resident: its init, the first interpreter
	// spareSpace is address space that the Go program that becomes the interpreter, thread stacks,
	// and libraries reserve but do not use.
	spareSpace = 4 << 30
)

// treeMemory returns the memory limit of all processes of a jail together, in bytes. It allows
// twice the snippet's memory: the keeper is a copy of the session's process, and pages that the
// process writes exist in both.
func treeMemory(limit int64) int64 { return 2*limit + ownMemory }

var (
	_ pykernel.Process    = (*process)(nil)
	_ session.Interrupter = (*process)(nil)
	_ session.Processor   = (*process)(nil)
)

// process is a jailed interpreter with the runtime loaded.
type process struct {
	jail       *jail.Process
	connection *session.Connection
	endings    *errgroup.Group // shared by the tier's processes
	oom        bool            // a kill for memory was reported
}

// pythonEnv is the whole environment of an interpreter. The fixed threshold keeps large blocks
// out of the C library's heap: freed blocks return to the system, so a session can continue
// after running out of memory.
var pythonEnv = []string{
	"PATH=/usr/bin:/bin", "HOME=/sandbox", "LANG=C.UTF-8", "TMPDIR=/tmp", "OPENBLAS_NUM_THREADS=1",
	"OMP_NUM_THREADS=1", "MALLOC_ARENA_MAX=4", "MALLOC_MMAP_THRESHOLD_=131072",
}

// needs are the properties that differ between the jails of sessions.
type needs struct {
	limits tiers.Limits
	binds  []jail.Bind
	texts  int64         // address space for long texts, in bytes
	out    bool          // with the folder for files that are copied back
	proxy  *egress.Proxy // nil without allowed hosts
}

// start starts a jail and loads the runtime.
func (t *tier) start(ctx context.Context, n needs) (*process, error) {
	python, err := t.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	t.noteShown(python.shown)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	config := t.jailFor(python, n, pykernel.NativeLoader(""))

	if n.out {
		config.Scratch, config.MinClass = []string{tiers.OutFolder}, jail.Full
	}
	if n.proxy != nil {
		config.Proxy, config.MinClass = true, jail.Full
		config.Env = append(config.Env, egress.Environment(jail.ProxyPort)...)
		if file := egress.HostCertificates(); file != "" {
			config.Binds = append(
				config.Binds, jail.Bind{Source: file, Target: egress.Certificates},
			)
		}
	}

	// ctx bounds only the opening; the jail outlives it.
	j, err := jail.Start(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("cannot start a jail: %w", err)
	}
	p := &process{jail: j, endings: &t.endings}
	if n.proxy != nil {
		n.proxy.Serve(j.Proxy())
	}

	if p.connection, _, err = pykernel.Load(ctx, j.Conn(), p, python.runtime(ctx)); err != nil {
		said := strings.TrimSpace(string(j.Output()))
		return nil, errors.Join(fmt.Errorf("%w: %s", err, said), p.end())
	}
	return p, nil
}

// jailFor configures the jail of an interpreter that runs a program.
func (t *tier) jailFor(python *python, n needs, program string) jail.Config {
	return jail.Config{
		Path:     python.path,
		Args:     []string{python.path, "-I", "-X", "utf8", "-c", program},
		Env:      append([]string{fmt.Sprint("RLM_MEMORY=", n.limits.Memory)}, pythonEnv...),
		Binds:    slices.Concat(python.shown.binds, n.binds),
		Profile:  jail.Programs,
		MinClass: t.options.minClass(),
		Off:      t.off,

		AllowSampled: t.options.AllowSampled,

		// The interpreter bounds its memory before the first snippet: see native.py.
		Limits: jail.Limits{
			Memory:       treeMemory(n.limits.Memory),
			AddressSpace: n.limits.Memory + spareSpace + n.texts,
		},
	}
}

// Processor returns the processor time of all processes of the jail.
func (p *process) Processor() time.Duration { return time.Duration(p.jail.Usage().CPUNanos) }

// Interrupt raises KeyboardInterrupt in the guest.
func (p *process) Interrupt() {
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	_ = p.jail.Signal(ctx, syscall.SIGINT) // if the guest is gone, the next read fails
}

// Kill ends all processes of the guest except the keeper.
func (p *process) Kill(keeper int) {
	if keeper == 0 {
		_ = p.jail.Kill() // Close reports the error
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	_ = p.jail.KillExcept(ctx, keeper) // if this fails, no keeper answers, and the jail is killed
}

// Connection returns the connection to the runtime in the jail.
func (p *process) Connection() *session.Connection { return p.connection }

// Fault returns nil: only the guest or its tier can end a jail.
func (p *process) Fault() error { return nil }

// OutOfMemory reports whether the kernel killed a process of the jail for its memory since the
// last call.
func (p *process) OutOfMemory(bool) bool {
	was := p.oom
	p.oom = p.jail.OOM()
	return p.oom && !was
}

// Peak returns the highest memory use of a process of the session, in bytes. After a bad end this
// value is unknown, and Peak returns the value for the whole jail.
func (p *process) Peak(own int64) int64 {
	all := p.jail.Usage().PeakMemory
	if own > 0 && (all == 0 || own < all) {
		return own
	}
	return all
}

// alive reports whether the jail is still running.
func (p *process) alive() bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.jail.Wait(ctx)
	return errors.Is(err, context.Canceled)
}

// Close ends the jail. The kernel takes ten milliseconds to remove its namespaces and its
// cgroup, so the caller waits only if many others are ending. The tier reports a failure when it
// is closed.
func (p *process) Close() error {
	p.endings.Go(p.end)
	return nil
}

// end ends the jail and waits for it.
func (p *process) end() error {
	err := p.jail.Kill()
	if p.connection != nil {
		_ = p.connection.Close() // its other end is gone
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	_, waited := p.jail.Wait(ctx)
	return errors.Join(err, waited)
}
