package local

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rlmhq/rlm/internal/gobuild"
	"github.com/rlmhq/rlm/internal/gosession"
	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
)

// newGoSession returns the Go half of a sandbox.
func newGoSession(t *Tier, cfg tiers.Config) *gosession.Session {
	return gosession.New(gosession.Options{
		Tier: Name, Config: cfg,
		Mechanisms: map[tiers.Limit]string{
			tiers.LimitWall:      "the host's clock, every 20 ms; SIGKILL",
			tiers.LimitActive:    "the jail's processor time, or the host's clock, every 20 ms; SIGKILL",
			tiers.LimitMemory:    "GOMEMLIMIT; the jail's limit, with 64 MiB for the program itself",
			tiers.LimitOutput:    "the host counts and drops the rest",
			tiers.LimitHostCalls: "the host counts and refuses",
		},
		Open: func(ctx context.Context) (gosession.Machine, error) {
			tools, err := t.golang(ctx)
			if err != nil {
				return nil, &tiers.RejectedError{Tier: Name, Missing: string(tiers.Go), Effects: tiers.EffectsNeverRan, Reason: err.Error()}
			}
			return &goMachine{tools: tools, class: t.options.MinClass, within: t.buildIn, memory: cfg.Limits.WithDefaults().Memory}, nil
		},
	})
}

// goMachine compiles the programs of one session, in a jail of its own, and runs
// each in another.
type goMachine struct {
	tools  *toolchain
	class  jail.Class
	within time.Duration // of one compilation
	memory int64         // of a snippet
	jail   *jail.Process // of the compiler, nil until it is needed
}

var _ gosession.Machine = (*goMachine)(nil)

// buildIn bounds one compilation. Everything that is no attack takes seconds.
const buildIn = 20 * time.Second

// Build compiles snippets. Packages that they want are compiled first.
func (m *goMachine) Build(ctx context.Context, request gobuild.Request) (gobuild.Built, error) {
	var missing []string
	for range 3 {
		exports, err := m.tools.provide(ctx, missing...)
		if err != nil {
			return gobuild.Built{}, err
		}
		for _, path := range missing {
			if _, ok := exports[path]; !ok {
				exports[path] = "" // so that the worker refuses it
			}
		}
		request.Toolchain = gobuild.Toolchain{Tools: m.tools.tools, Version: m.tools.version, Arch: runtime.GOARCH, Exports: exports}
		built, more, err := m.ask(ctx, &request)
		if err != nil || len(more) == 0 {
			return built, err
		}
		missing = more
	}
	return gobuild.Built{}, gobuild.Stopped("the compiler asks for packages without end")
}

// ask has one request answered, within the limits of a compilation.
func (m *goMachine) ask(ctx context.Context, request *gobuild.Request) (built gobuild.Built, missing []string, err error) {
	if m.jail == nil {
		config := m.tools.buildJail()
		config.MinClass = m.class
		if m.jail, err = jail.Start(context.WithoutCancel(ctx), config); err != nil {
			return gobuild.Built{}, nil, fmt.Errorf("cannot start a jail for the compiler: %w", err)
		}
	}
	deadline := time.Now().Add(m.within)
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	conn := m.jail.Conn()
	defer context.AfterFunc(limited, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // a closed connection needs none
	built, missing, err = gobuild.Ask(conn, request)
	var failure *gobuild.CompileError
	if err == nil || errors.As(err, &failure) {
		return built, missing, err
	}
	oom := m.jail.OOM()
	err = errors.Join(err, m.Close())
	switch {
	case ctx.Err() != nil:
		return gobuild.Built{}, nil, context.Cause(ctx)
	case oom:
		return gobuild.Built{}, nil, gobuild.Stopped(fmt.Sprintf("the compiler needed more than %d MiB", int64(buildMemory)>>20))
	case time.Now().After(deadline):
		return gobuild.Built{}, nil, gobuild.Stopped(fmt.Sprintf("the compiler took longer than %v", m.within))
	}
	return gobuild.Built{}, nil, gobuild.Stopped(fmt.Sprintf("the compiler broke: %v", err))
}

// Close ends the compiler's jail.
func (m *goMachine) Close() error {
	if m.jail == nil {
		return nil
	}
	p := m.jail
	m.jail = nil
	return p.Kill()
}
