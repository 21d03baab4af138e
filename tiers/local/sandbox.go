package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/egress"
	"github.com/rlmhq/rlm/internal/gosession"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is one session: Python lives in a process of its own, Go in another.
type sandbox struct {
	*pykernel.Home
	golang *gosession.Session
}

var (
	_ tiers.Sandbox  = (*sandbox)(nil)
	_ tiers.Exporter = (*sandbox)(nil)
)

func open(ctx context.Context, t *Tier, cfg tiers.Config) (*sandbox, error) {
	session, err := pykernel.NewSession(ctx, cfg)
	if err != nil {
		return nil, err
	}
	reach := t.reach
	reach.Log = t.options.Log
	proxy, err := egress.ForSession(cfg.Hosts, reach)
	if err != nil {
		return nil, err
	}
	binds, paths := t.show(cfg.Inputs)
	session.Show(paths)
	s := &sandbox{
		golang: newGoSession(t, cfg),
		Home: &pykernel.Home{
			Tier: Name, Lacks: "it runs Python and Go only", Session: session, Proxy: proxy,
			Start: func(ctx context.Context) (pykernel.Process, error) {
				return t.claim(ctx, session.Limits(), binds, proxy)
			},
		},
	}
	if err := s.Renew(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Enforced = s.enforcement(session.Limits())
	return s, nil
}

// enforcement says how each limit is kept.
func (s *sandbox) enforcement(l tiers.Limits) []tiers.Enforcement {
	const clock = "the host's clock, read every two milliseconds; KeyboardInterrupt, then SIGKILL"
	memory := "RLIMIT_DATA for each process, MemoryError"
	if p, ok := s.Process().(*process); ok {
		for _, layer := range p.jail.Attestation().Layers {
			if layer.Name == "cgroup" && layer.On {
				memory += fmt.Sprintf("; cgroup %s, %d bytes for the whole tree", layer.Mechanism, treeMemory(l.Memory))
			}
		}
	}
	return []tiers.Enforcement{
		{Limit: tiers.LimitWall, Value: l.Wall.String(), Mechanism: clock},
		{Limit: tiers.LimitActive, Value: l.Active.String(), Mechanism: clock},
		{Limit: tiers.LimitMemory, Value: fmt.Sprintf("%d bytes", l.Memory), Mechanism: memory},
		{Limit: tiers.LimitOutput, Value: fmt.Sprintf("%d bytes", l.Output), Mechanism: "the host counts and drops the rest"},
		{Limit: tiers.LimitHostCalls, Value: fmt.Sprint(l.HostCalls), Mechanism: "the host counts and refuses"},
	}
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
