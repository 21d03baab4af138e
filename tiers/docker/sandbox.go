package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/egress"
	"github.com/rlmhq/rlm/internal/gosession"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is one session: its Python lives in a container of its own, its Go in
// others.
type sandbox struct {
	*pykernel.Home
	golang  *gosession.Session
	started int // how many containers its Python has had
}

var (
	_ tiers.Sandbox   = (*sandbox)(nil)
	_ tiers.Exporter  = (*sandbox)(nil)
	_ tiers.Collector = (*sandbox)(nil)
)

func open(ctx context.Context, t *Tier, cfg tiers.Config) (*sandbox, error) {
	session, err := pykernel.NewSession(ctx, cfg)
	if err != nil {
		return nil, err
	}
	files, paths := show(cfg.Inputs)
	session.Show(paths)
	if err := files.mount(cfg.Mounts); err != nil {
		return nil, err
	}
	reach := t.reach
	reach.Log = t.options.Log
	proxy, err := egress.ForSession(cfg.Hosts, reach)
	if err != nil {
		return nil, err
	}
	n := needs{session.Limits(), files, cfg.Out, proxy}
	s := &sandbox{
		golang: t.newGoSession(cfg, files),
		Home: &pykernel.Home{
			Tier: Name, Lacks: "it runs Python and Go only", Session: session, Proxy: proxy, Enforced: enforcement(session.Limits()), Lasting: cfg.Out,
		},
	}
	s.Start = func(ctx context.Context) (pykernel.Process, error) {
		s.started++
		return t.claim(ctx, n)
	}
	if cfg.Language == tiers.Go {
		return s, nil // Python starts when it is needed
	}
	if err := s.Renew(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Run runs a snippet. See tiers.Sandbox.
func (s *sandbox) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	if job.Language == tiers.Go && !s.Closed() {
		return s.golang.Run(ctx, job, s.Session.Snippet())
	}
	return s.Home.Run(ctx, job)
}

// Export returns the namespace for another tier.
func (s *sandbox) Export(ctx context.Context) (tiers.State, error) {
	if !s.Closed() && s.golang.Last(s.Session.Snippet()) {
		return s.golang.Export(s.Session.Snippet())
	}
	return s.Home.Export(ctx)
}

// Import brings a namespace from another tier into a fresh sandbox.
func (s *sandbox) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	if !s.Closed() && gosession.Importable(state) {
		return s.golang.Import(ctx, state, s.Session.Snippet())
	}
	return s.Home.Import(ctx, state)
}

// Close ends the sandbox.
func (s *sandbox) Close() error { return errors.Join(s.golang.Close(), s.Home.Close()) }

// enforcement says how each limit is kept.
func enforcement(l tiers.Limits) []tiers.Enforcement {
	const clock = "the host's clock, read every two milliseconds; KeyboardInterrupt, then SIGKILL"
	return []tiers.Enforcement{
		{Limit: tiers.LimitWall, Value: l.Wall.String(), Mechanism: clock},
		{Limit: tiers.LimitActive, Value: l.Active.String(), Mechanism: clock},
		{Limit: tiers.LimitMemory, Value: fmt.Sprintf("%d bytes", l.Memory), Mechanism: fmt.Sprintf(
			"RLIMIT_DATA for each process, MemoryError; the container's control group, %d bytes for all, no swap", treeMemory(l.Memory))},
		{Limit: tiers.LimitOutput, Value: fmt.Sprintf("%d bytes", l.Output), Mechanism: "the host counts and drops the rest"},
		{Limit: tiers.LimitHostCalls, Value: fmt.Sprint(l.HostCalls), Mechanism: "the host counts and refuses"},
	}
}
