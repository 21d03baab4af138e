package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rlmhq/rlm/internal/egress"
	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/tiers"
)

// Deadlines for what has no other.
const (
	startTimeout = 30 * time.Second
	orderTimeout = 5 * time.Second
)

// What a jail needs beyond the snippet's own memory.
const (
	ownMemory = 64 << 20 // resident: its init, the first interpreter
	// spareSpace is address space for what is reserved and not used: by the Go
	// program that becomes the interpreter, by threads' stacks, by libraries.
	spareSpace = 4 << 30
)

// treeMemory is what all processes of a jail may have together. The keeper is a
// copy of the session's process: what that writes anew both have.
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
	oom        bool // has been reported
}

// pythonEnv is all that an interpreter finds of an environment. The fixed
// threshold keeps large blocks out of the C library's heap: once freed they are
// the system's again, so that a session which ran out of memory can go on.
var pythonEnv = []string{
	"PATH=/usr/bin:/bin", "HOME=/sandbox", "LANG=C.UTF-8", "TMPDIR=/tmp", "OPENBLAS_NUM_THREADS=1",
	"OMP_NUM_THREADS=1", "MALLOC_ARENA_MAX=4", "MALLOC_MMAP_THRESHOLD_=131072",
}

// start starts a jail and loads the runtime.
func (t *Tier) start(
	ctx context.Context, limits tiers.Limits, binds []jail.Bind, proxy *egress.Proxy,
) (*process, error) {
	python, err := t.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	config := t.jailFor(python, limits, binds, pykernel.NativeLoader(""))

	if proxy != nil {
		config.Proxy, config.MinClass = true, jail.Full
		config.Env = append(config.Env, egress.Environment(jail.ProxyPort)...)
		if file := egress.HostCertificates(); file != "" {
			config.Binds = append(
				config.Binds, jail.Bind{Source: file, Target: egress.Certificates},
			)
		}
	}

	// The jail outlives the opening that ctx bounds.
	j, err := jail.Start(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("cannot start a jail: %w", err)
	}
	p := &process{jail: j}
	if proxy != nil {
		proxy.Serve(j.Proxy())
	}

	if p.connection, _, err = pykernel.Load(ctx, j.Conn(), p); err != nil {
		said := strings.TrimSpace(string(j.Output()))
		return nil, errors.Join(fmt.Errorf("%w: %s", err, said), p.Close())
	}
	return p, nil
}

// jailFor is the jail of an interpreter that runs a program.
func (t *Tier) jailFor(
	python *python, limits tiers.Limits, binds []jail.Bind, program string,
) jail.Config {
	return jail.Config{
		Path:     python.path,
		Args:     []string{python.path, "-I", "-X", "utf8", "-c", program},
		Env:      append([]string{fmt.Sprint("RLM_MEMORY=", limits.Memory)}, pythonEnv...),
		Binds:    slices.Concat(python.binds, binds),
		Profile:  jail.Programs,
		MinClass: t.options.MinClass,
		Off:      t.off,
		// The interpreter bounds its own memory before the first snippet, see native.py.
		Limits: jail.Limits{
			Memory: treeMemory(limits.Memory), AddressSpace: limits.Memory + spareSpace,
		},
	}
}

// Processor is the time that all processes of the jail have computed.
func (p *process) Processor() time.Duration { return time.Duration(p.jail.Usage().CPUNanos) }

// Interrupt raises KeyboardInterrupt in the guest.
func (p *process) Interrupt() {
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	_ = p.jail.Signal(ctx, syscall.SIGINT) // a guest that is gone shows at the next read
}

// Kill ends all processes of the guest but the keeper.
func (p *process) Kill(keeper int) {
	if keeper == 0 {
		_ = p.jail.Kill() // close reports what went wrong
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	_ = p.jail.KillExcept(ctx, keeper) // if it failed, no keeper answers, and all is killed
}

// Connection leads to the runtime in the jail.
func (p *process) Connection() *session.Connection { return p.connection }

// Fault is nil: what ends a jail is the guest or its tier.
func (p *process) Fault() error { return nil }

// OutOfMemory reports whether the kernel has ended something in the jail for its
// memory since the last time.
func (p *process) OutOfMemory(bool) bool {
	was := p.oom
	p.oom = p.jail.OOM()
	return p.oom && !was
}

// Peak is the most memory that a process of the session has had. After a bad end
// nobody can say, and the jail's own is given.
func (p *process) Peak(own int64) int64 {
	all := p.jail.Usage().PeakMemory
	if own > 0 && (all == 0 || own < all) {
		return own
	}
	return all
}

// alive reports whether the jail has not ended yet.
func (p *process) alive() bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.jail.Wait(ctx)
	return errors.Is(err, context.Canceled)
}

// Close ends the jail and waits for it.
func (p *process) Close() error {
	err := p.jail.Kill()
	if p.connection != nil {
		_ = p.connection.Close() // the jail has closed it
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	_, waited := p.jail.Wait(ctx)
	return errors.Join(err, waited)
}
