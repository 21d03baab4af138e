package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/egress"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is one session: its Python lives in a container of its own.
type sandbox struct {
	*pykernel.Home
	started int // how many containers it has had
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
	s := &sandbox{Home: &pykernel.Home{
		Tier: Name, Lacks: "it runs Python only", Session: session, Proxy: proxy, Enforced: enforcement(session.Limits()), Lasting: cfg.Out,
	}}
	s.Start = func(ctx context.Context) (pykernel.Process, error) {
		s.started++
		return t.claim(ctx, n)
	}
	if err := s.Renew(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

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
