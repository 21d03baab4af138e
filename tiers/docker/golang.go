package docker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/dockerapi"
	"github.com/rlmhq/rlm/internal/gobuild"
	"github.com/rlmhq/rlm/internal/gosession"
	"github.com/rlmhq/rlm/tiers"
)

// newGoSession returns the Go half of a sandbox, whose programs see the files.
func (t *Tier) newGoSession(cfg tiers.Config, files *shown) *gosession.Session {
	memory := cfg.Limits.WithDefaults().Memory
	return gosession.New(gosession.Options{
		Tier: Name, Config: cfg,
		Mechanisms: map[tiers.Limit]string{
			tiers.LimitWall:      "the host's clock, every 20 ms; SIGKILL",
			tiers.LimitActive:    "the processes' time, as the first process of the container counts it, every 20 ms; SIGKILL",
			tiers.LimitMemory:    fmt.Sprintf("GOMEMLIMIT; the container's control group, %d bytes, no swap", programMemory(memory)),
			tiers.LimitOutput:    "the host counts and drops the rest",
			tiers.LimitHostCalls: "the host counts and refuses",
		},
		Open: func(ctx context.Context) (gosession.Machine, error) {
			setup, err := t.ready(ctx)
			if err != nil {
				return nil, err
			}
			if err := setup.lacks[tiers.Go]; err != nil {
				return nil, rejectGo(string(tiers.Go), err.Error())
			}
			if cfg.Out {
				return nil, rejectGo(string(tiers.FeatureFiles), "files come back from Python snippets only")
			}
			t.sweepOnce(ctx)
			return &goMachine{tier: t, setup: setup, files: files, memory: memory, within: t.buildIn}, nil
		},
	})
}

func rejectGo(missing, reason string) error {
	return &tiers.RejectedError{Tier: Name, Missing: missing, Effects: tiers.EffectsNeverRan, Reason: reason}
}

// goMachine compiles the programs of one session in a container, and runs each in
// another, which starts while the compiler works.
type goMachine struct {
	tier     *Tier
	setup    setup
	files    *shown
	memory   int64         // of a snippet
	within   time.Duration // of one compilation
	compiler *container    // nil until it is needed
	next     chan goStart  // of the next program's container, nil if none is being started
	ending   sync.WaitGroup
}

// goStart is a container for a program, or why there is none.
type goStart struct {
	program *goProgram
	err     error
}

var _ gosession.Machine = (*goMachine)(nil)

// Bounds of a compilation. Everything that is no attack takes seconds.
const (
	buildIn        = 20 * time.Second
	buildMemory    = 1 << 30
	buildProcesses = 128
)

// Build compiles snippets. A compiler that is gone, by whomever, is started once more.
func (m *goMachine) Build(ctx context.Context, request gobuild.Request) (gobuild.Built, error) {
	m.startNext(ctx)
	built, err := m.ask(ctx, &request)
	if errors.Is(err, errCompilerGone) {
		built, err = m.ask(ctx, &request)
	}
	if errors.Is(err, errCompilerGone) {
		return gobuild.Built{}, gobuild.Stopped(err.Error())
	}
	return built, err
}

var errCompilerGone = errors.New("the compiler broke")

// ask has the compiler answer a request, within the limits of a compilation.
func (m *goMachine) ask(ctx context.Context, request *gobuild.Request) (gobuild.Built, error) {
	if m.compiler == nil {
		if err := m.startCompiler(ctx); err != nil {
			m.tier.forget() // the daemon may be another one now, or the image gone
			return gobuild.Built{}, fmt.Errorf("cannot start a container for the compiler: %w", err)
		}
	}
	deadline := time.Now().Add(m.within)
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	box := m.compiler.box
	defer context.AfterFunc(limited, func() { _ = box.Close() })() // its own end is reported
	built, _, err := gobuild.Ask(box, request)
	var failure *gobuild.CompileError
	if err == nil || errors.As(err, &failure) {
		return built, err
	}
	oom := m.compiler.OutOfMemory(true)
	err = errors.Join(err, m.compiler.Fault(), m.compiler.said(), m.endCompiler())
	switch {
	case ctx.Err() != nil:
		return gobuild.Built{}, context.Cause(ctx)
	case oom:
		return gobuild.Built{}, gobuild.Stopped(fmt.Sprintf("the compiler needed more than %d MiB", int64(buildMemory)>>20))
	case time.Now().After(deadline):
		return gobuild.Built{}, gobuild.Stopped(fmt.Sprintf("the compiler took longer than %v", m.within))
	}
	return gobuild.Built{}, fmt.Errorf("%w: %w", errCompilerGone, err)
}

// startCompiler starts the container of the compiler.
func (m *goMachine) startCompiler(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	n := needs{files: &shown{}}
	spec := m.spec("compiler", n)
	spec.Command = []string{images.GoGuest, "build"}
	spec.Env = []string{"HOME=/tmp", "TMPDIR=/tmp", "GOTRACEBACK=none"}
	spec.Memory, spec.Processes = buildMemory, buildProcesses
	c := &container{}
	if err := m.tier.boot(ctx, c, spec); err != nil {
		return err
	}
	if err := m.tier.trust(ctx, c, &m.setup, n); err != nil {
		return errors.Join(err, c.end())
	}
	m.compiler = c
	return nil
}

// spec is what the containers of compiler and programs have in common. role tells them
// apart for people who look at containers.
func (m *goMachine) spec(role string, n needs) dockerapi.Spec {
	spec := m.tier.spec(&m.setup, m.tier.golang, m.setup.golang.ID, n)
	spec.Labels[labelGo] = role
	return spec
}

// startNext begins to start the container of the next program, unless one is ready
// or on its way.
func (m *goMachine) startNext(ctx context.Context) {
	if m.next != nil {
		return
	}
	next := make(chan goStart, 1)
	m.next = next
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout) // it may be for a later snippet
	go func() {
		defer cancel()
		p, err := m.startProgram(ctx)
		next <- goStart{p, err}
	}()
}

// Start runs a program in the container that was started for it, or in another if
// that did not start or has died while it waited.
func (m *goMachine) Start(ctx context.Context, program []byte) (gosession.Program, error) {
	var failed error
	for range 2 {
		m.startNext(ctx)
		select {
		case started := <-m.next:
			m.next = nil
			if failed = started.err; failed != nil {
				m.tier.forget() // the daemon may be another one now, or the image gone
				continue
			}
			if failed = started.program.begin(program); failed == nil {
				return started.program, nil
			}
			started.program.Close()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, fmt.Errorf("cannot start a program: %w", failed)
}

func (m *goMachine) endCompiler() error {
	if m.compiler == nil {
		return nil
	}
	c := m.compiler
	m.compiler = nil
	return c.end()
}

// Close ends the compiler, and the container that nobody has used, and waits for
// those that are being let go.
func (m *goMachine) Close() error {
	if m.next != nil {
		if unused := <-m.next; unused.program != nil {
			unused.program.Close()
		}
		m.next = nil
	}
	err := m.endCompiler()
	m.ending.Wait()
	return err
}
