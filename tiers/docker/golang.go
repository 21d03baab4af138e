package docker

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rlmhq/rlm/internal/golang"
	"github.com/rlmhq/rlm/internal/golang/guest/build"
	"github.com/rlmhq/rlm/internal/golang/guest/relay"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/tiers"
)

// newGoGuest returns the Go half of a sandbox. Its programs can read the given files.
func (t *tier) newGoGuest(accounts *session.Accounts, files *shown) *golang.Guest {
	return &golang.Guest{
		Tier: Name, Accounts: accounts,
		Open: func(ctx context.Context) (golang.Wall, error) {
			setup, err := t.ready(ctx)
			if err != nil {
				return nil, err
			}
			if err := setup.lacks[tiers.Go]; err != nil {
				return nil, rejectGo(string(tiers.Go), err.Error())
			}

			t.sweepOnce(ctx)

			return &goWall{
				tier: t, setup: setup, files: files, memory: accounts.Limits().Memory,
				out: accounts.Config().Out, labels: accounts.Config().Labels,
			}, nil
		},
	}
}

func rejectGo(missing, reason string) error {
	return &tiers.RejectedError{
		Tier: Name, Missing: missing, Effects: tiers.EffectsNeverRan, Reason: reason,
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
			Mechanism: "the processes' time, as the relay in the container counts it, every 20 " +
				"ms; SIGKILL",
		},
		{
			Limit: tiers.LimitMemory,
			Value: fmt.Sprintf("%d bytes", l.Memory),
			Mechanism: fmt.Sprintf(
				"GOMEMLIMIT; the container's control group, %d bytes, no swap",
				programMemory(l.Memory),
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

// programMemory returns the memory limit of the container of a program, in bytes.
func programMemory(limit int64) int64 { return roundToPages(limit + golang.ProgramMemory) }

// goWall starts the compiler and the programs of one session in containers.
type goWall struct {
	tier   *tier
	setup  setup
	files  *shown
	memory int64 // memory limit of a snippet
	out    bool  // with the folder for files that are copied back
	labels map[string]string
}

var _ golang.Wall = (*goWall)(nil)

// Toolchain returns the zero value: the image contains a toolchain.
func (w *goWall) Toolchain(context.Context, []string) (build.Toolchain, error) {
	return build.Toolchain{}, nil
}

// compilerProcesses bounds the processes and threads of a compiler.
const compilerProcesses = 128

// StartCompiler starts the container of the compiler.
func (w *goWall) StartCompiler(ctx context.Context) (golang.Box, error) {
	n := needs{files: &shown{}, labels: w.labels}
	spec := w.spec("compiler", n)
	spec.Command = []string{w.tier.golang.Program, "build"}
	spec.Env = []string{"HOME=/tmp", "TMPDIR=/tmp", "GOTRACEBACK=none"}
	spec.Memory, spec.Processes = golang.CompilerMemory, compilerProcesses
	return w.start(ctx, spec, n)
}

// zoneInfo names the time zone file of the image; Go expects it in its toolchain.
const zoneInfo = "ZONEINFO=/usr/lib/rlm/zoneinfo.zip"

// StartRelay starts the container of a program.
func (w *goWall) StartRelay(ctx context.Context, folder string) (golang.Box, error) {
	n := needs{files: w.files.with(folder, relay.Folder), out: w.out, labels: w.labels}
	spec := w.spec("program", n)
	spec.Command = []string{w.tier.golang.Program, "run", zoneInfo}
	spec.Memory, spec.Processes = programMemory(w.memory), processes
	box, err := w.start(ctx, spec, n)
	if err != nil {
		return nil, err
	}

	if err := w.tier.removeLeft(ctx); err != nil { // the daemon answers again
		w.tier.options.Log.Warn("cannot remove a container", "error", err)
	}

	return box, nil
}

// spec returns the common part of the containers of compiler and programs. The label role
// distinguishes them in listings of containers.
func (w *goWall) spec(role string, n needs) dockerapi.Spec {
	spec := w.tier.spec(&w.setup, w.tier.golang, w.setup.golang.ID, n)
	spec.Labels[labelGo] = role
	return spec
}

func (w *goWall) start(ctx context.Context, spec dockerapi.Spec, n needs) (golang.Box, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	b := &goBox{tier: w.tier}
	err := w.tier.boot(ctx, &b.container, spec)
	if err == nil {
		if err = w.tier.verify(ctx, &b.container, &w.setup, n); err != nil {
			err = errors.Join(err, b.end())
		}
	}

	if err != nil {
		w.tier.forget() // the daemon or the image may have changed
		return nil, fmt.Errorf("cannot start a container: %w", err)
	}
	return b, nil
}

// goBox is a container with a compiler or a relay.
type goBox struct {
	container
	tier *tier
}

var _ golang.Box = (*goBox)(nil)

// Conn returns the connection to the container's first process.
func (b *goBox) Conn() io.ReadWriteCloser { return b.box }

// Diagnose queries the daemon for the reason why the container failed.
func (b *goBox) Diagnose(hasEnded bool) (outOfMemory bool, fault error) {
	if !hasEnded {
		fault = b.explainSilence(nil)
		b.killed = true
		return false, fault
	}

	outOfMemory, fault = b.OutOfMemory(true), b.Fault()
	if !outOfMemory && fault == nil { // perhaps only the connection ended
		fault = b.explainSilence(nil)
	}
	return outOfMemory, fault
}

// Said returns the output of the first process after its attestation.
func (b *goBox) Said() string { return b.report.text() }

// Close removes the container.
func (b *goBox) Close() error {
	err := b.end()
	if err != nil { // it is removed later, or the tier's Close reports it
		b.tier.options.Log.Warn("cannot remove a container", "error", err)
	}
	return err
}
