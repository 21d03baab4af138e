package local

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rlmhq/rlm/internal/egress"
	"github.com/rlmhq/rlm/internal/labels"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/tiers"
)

// open starts a sandbox. Its Python runs in one jailed process, its Go in others.
func open(ctx context.Context, t *Tier, cfg tiers.Config) (tiers.Sandbox, error) {
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

	n := needs{limits: accounts.Limits(), proxy: proxy}
	texts := t.showTexts(&n, accounts)
	python := &pykernel.Guest{
		Tier: Name, Accounts: accounts,
		Start: func(ctx context.Context) (pykernel.Process, error) {
			return t.claim(ctx, n)
		},
	}

	machine := &session.Machine{
		Tier:     Name,
		Accounts: accounts,
		Guests: map[tiers.Language]session.Guest{
			tiers.Python: python, tiers.Go: newGoGuest(t, accounts),
		},
		Lacks:    "it runs Python and Go only",
		Nouns:    map[tiers.Language]string{tiers.Go: "program"},
		Enforced: map[tiers.Language][]tiers.Enforcement{tiers.Go: enforcedOnGo(accounts.Limits())},
	}

	if proxy != nil {
		machine.Denials, machine.Closers = proxy.Denials, []io.Closer{proxy}
	}
	if texts != nil {
		machine.Closers = append(machine.Closers, texts)
	}

	if err := python.Renew(ctx); err != nil {
		return nil, errors.Join(err, machine.Close())
	}

	machine.Enforced[tiers.Python] = enforcedOnPython(accounts.Limits(), python.Process())
	return machine, nil
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
