package local

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/golang"
	"github.com/rlmhq/rlm/internal/golang/guest/build"
	"github.com/rlmhq/rlm/internal/golang/guest/relay"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local/internal/goworker"
)

// newGoGuest returns the Go half of a sandbox.
func newGoGuest(t *tier, accounts *session.Accounts) *golang.Guest {
	return &golang.Guest{
		Tier: Name, Accounts: accounts,
		Open: func(ctx context.Context) (golang.Wall, error) {
			tools, err := t.golang(ctx)
			if err != nil {
				return nil, &tiers.RejectedError{
					Tier:    Name,
					Missing: string(tiers.Go),
					Effects: tiers.EffectsNeverRan,
					Reason:  err.Error(),
				}
			}

			return &goWall{
				tools: tools, class: t.options.minClass(), memory: accounts.Limits().Memory,
				out: accounts.Config().Out, sampled: t.options.AllowSampled,
			}, nil
		},
	}
}

// enforcedOnGo lists how each limit of a Go snippet is enforced.
func enforcedOnGo(l tiers.Limits) []tiers.Enforcement {
	return []tiers.Enforcement{
		{
			Limit:     tiers.LimitWall,
			Value:     l.Wall.String(),
			Mechanism: "the host's clock, every 2 ms; SIGKILL",
		},
		{
			Limit: tiers.LimitActive,
			Value: l.Active.String(),
			Mechanism: "the processes' time, as the relay in the jail counts it, every 20 ms; " +
				"SIGKILL",
		},
		{
			Limit: tiers.LimitMemory,
			Value: fmt.Sprintf("%d bytes", l.Memory),
			Mechanism: fmt.Sprintf(
				"GOMEMLIMIT; the jail's limit, with %d MiB for the program itself",
				golang.ProgramMemory>>20,
			),
		},
		{
			Limit:     tiers.LimitOutput,
			Value:     fmt.Sprintf("%d bytes", l.Output),
			Mechanism: "the host counts and drops the rest",
		},
		{
			Limit:     tiers.LimitHostCalls,
			Value:     fmt.Sprint(l.HostCalls),
			Mechanism: "the host counts and refuses",
		},
	}
}

// goWall starts the compiler and the programs of one session in jails.
type goWall struct {
	tools   *toolchain
	class   jail.Class
	memory  int64 // memory limit of a snippet
	out     bool  // with the folder for files that are copied back
	sampled bool  // a jail without a cgroup is acceptable
}

var _ golang.Wall = (*goWall)(nil)

// Toolchain describes the host's toolchain. Packages are compiled first.
func (w *goWall) Toolchain(ctx context.Context, packages []string) (build.Toolchain, error) {
	exports, err := w.tools.provide(ctx, packages...)
	if err != nil {
		return build.Toolchain{}, err
	}

	for _, path := range packages {
		if _, ok := exports[path]; !ok {
			exports[path] = "" // so that the compiler rejects it
		}
	}

	return build.Toolchain{
		Tools: w.tools.tools, Version: w.tools.version, Arch: runtime.GOARCH, Exports: exports,
	}, nil
}

// StartCompiler starts the jail of the compiler.
func (w *goWall) StartCompiler(ctx context.Context) (golang.Box, error) {
	return w.start(ctx, jail.Config{
		Worker: goworker.Compiler,
		Env: []string{
			"GOTRACEBACK=none", "TMPDIR=/tmp",
			fmt.Sprintf("GOMAXPROCS=%d", min(runtime.NumCPU(), 4)),
		},
		Binds: []jail.Bind{{Source: w.tools.tools}, {Source: w.tools.tool.Builds()}},
		Limits: jail.Limits{
			Memory: golang.CompilerMemory, AddressSpace: 16 << 30, FileSize: build.MaxFrame,
			TmpBytes: 2 * build.MaxFrame, Processes: 128,
		},
	})
}

// programSpace is the address space in addition to the snippet's memory, in bytes. Go's runtime
// reserves far more than it uses.
const programSpace = 4 << 30

// StartRelay starts the jail of a program.
func (w *goWall) StartRelay(ctx context.Context, folder string) (golang.Box, error) {
	var scratch []string
	if w.out {
		scratch = []string{tiers.OutFolder}
	}
	return w.start(ctx, jail.Config{
		Worker: goworker.Relay, Scratch: scratch,
		Env:   []string{"GOTRACEBACK=none"},
		Binds: append(newShown().binds, jail.Bind{Source: folder, Target: relay.Folder}),
		Limits: jail.Limits{
			Memory: w.memory + golang.ProgramMemory, AddressSpace: w.memory + programSpace,
		},
	})
}

func (w *goWall) start(ctx context.Context, config jail.Config) (golang.Box, error) {
	config.Profile, config.MinClass = jail.Programs, w.class
	config.AllowSampled = w.sampled
	if len(config.Scratch) > 0 {
		config.MinClass = jail.Full
	}
	process, err := jail.Start(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("cannot start a jail: %w", err)
	}

	b := &goBox{jail: process}
	b.close = sync.OnceValue(b.kill)

	return b, nil
}

// goBox is a jail with a compiler or a relay.
type goBox struct {
	jail  *jail.Process
	close func() error
}

var _ golang.Box = (*goBox)(nil)

// Conn returns the connection to the worker.
func (b *goBox) Conn() io.ReadWriteCloser { return b.jail.Conn() }

// Diagnose checks whether the kernel killed a process for its memory. It reports no fault: only the
// guest or its tier can end a jail.
func (b *goBox) Diagnose(hasEnded bool) (outOfMemory bool, fault error) {
	return hasEnded && b.jail.OOM(), nil
}

// Said returns the worker's standard error.
func (b *goBox) Said() string { return strings.TrimSpace(string(b.jail.Output())) }

// Close ends the jail and waits.
func (b *goBox) Close() error { return b.close() }

// endTimeout bounds the end of a jail.
const endTimeout = 10 * time.Second

func (b *goBox) kill() error {
	killed := b.jail.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if _, err := b.jail.Wait(ctx); err != nil {
		return err
	}
	return killed
}
