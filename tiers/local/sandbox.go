package local

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rlmhq/rlm/internal/golang"
	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/labels"
	"github.com/rlmhq/rlm/internal/snippet/outfiles"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is one session.
type sandbox struct {
	*session.Machine
	python *pykernel.Guest
	golang *golang.Guest
	starts int // starts of its Python process
}

var (
	_ tiers.Sandbox   = (*sandbox)(nil)
	_ tiers.Exporter  = (*sandbox)(nil)
	_ tiers.Collector = (*sandbox)(nil)
)

// Collect copies the files below /out into a folder of the host.
func (s *sandbox) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	leave, err := s.Enter()
	if err != nil {
		return tiers.Collected{}, err
	}
	defer leave()
	made, err := s.golang.Collect(ctx, dir)
	if err != nil {
		return made, err
	}
	got, err := pykernel.Collect(s.Accounts.Config(), dir, s.starts > 1,
		func(limits tiers.Limits, source string) (tiers.Result, error) {
			return s.python.RunAside(ctx, limits, source)
		})
	return outfiles.Join(made, got), err
}

// open starts a sandbox. Its Python runs in one jailed process, its Go in other jails.
func open(ctx context.Context, t *tier, cfg tiers.Config) (tiers.Sandbox, error) {
	accounts, err := session.NewAccounts(ctx, cfg)
	if err != nil {
		return nil, err
	}
	reach := t.reach
	reach.Log = labels.AddTo(t.options.Log, cfg.Labels)
	proxy, err := egress.New(cfg.Hosts, reach)
	if err != nil {
		return nil, err
	}

	n := needs{limits: accounts.Limits(), proxy: proxy, out: cfg.Out}
	texts := t.showTexts(&n, accounts)
	box := &sandbox{golang: newGoGuest(t, accounts)}
	box.python = &pykernel.Guest{
		Tier: Name, Accounts: accounts, MustOutlive: cfg.Out,
		Start: func(ctx context.Context) (pykernel.Process, error) {
			box.starts++
			return t.claim(ctx, n)
		},
	}

	box.Machine = &session.Machine{
		Tier:     Name,
		Accounts: accounts,
		Guests: map[tiers.Language]session.Guest{
			tiers.Python: box.python, tiers.Go: box.golang,
		},
		Lacks:    "it runs Python and Go only",
		Nouns:    map[tiers.Language]string{tiers.Go: "program"},
		Enforced: map[tiers.Language][]tiers.Enforcement{tiers.Go: enforcedOnGo(accounts.Limits())},
	}

	if proxy != nil {
		box.Denials, box.Closers = proxy.Denials, []io.Closer{proxy}
	}
	if texts != nil {
		box.Closers = append(box.Closers, texts)
	}

	if err := box.python.Renew(ctx); err != nil {
		return nil, errors.Join(err, box.Close())
	}

	box.Enforced[tiers.Python] = enforcedOnPython(accounts.Limits(), box.python.Process())
	return box, nil
}

// enforcedOnPython lists how each limit of a Python snippet is enforced.
func enforcedOnPython(l tiers.Limits, p pykernel.Process) []tiers.Enforcement {
	const clock = "the host's clock, read every two milliseconds; KeyboardInterrupt, then SIGKILL"
	memory := "RLIMIT_DATA for each process, MemoryError"
	if p, ok := p.(*process); ok {
		for _, layer := range p.jail.Attestation().Layers {
			if layer.Name == "cgroup" && layer.On {
				memory += fmt.Sprintf(
					"; cgroup %s, %d bytes for the whole tree", layer.Mechanism,
					treeMemory(l.Memory),
				)
			}
		}
	}

	return []tiers.Enforcement{
		{Limit: tiers.LimitWall, Value: l.Wall.String(), Mechanism: clock},
		{Limit: tiers.LimitActive, Value: l.Active.String(), Mechanism: clock},
		{Limit: tiers.LimitMemory, Value: fmt.Sprintf("%d bytes", l.Memory), Mechanism: memory},
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
