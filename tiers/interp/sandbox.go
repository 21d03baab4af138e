package interp

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// open starts a sandbox. One worker runs both languages.
func (t *tier) open(ctx context.Context, cfg tiers.Config) (tiers.Sandbox, error) {
	if f := cfg.Limits.Fuel; f != 0 && f != tiers.DefaultLimits().Fuel {
		return nil, reject(string(tiers.FeatureFuel), "it does not count fuel")
	}
	for _, in := range cfg.Inputs {
		if in.Dir != nil {
			return nil, reject("directory inputs", "it does not support directories as inputs")
		}
	}

	accounts, err := session.NewAccounts(ctx, cfg)
	if err != nil {
		return nil, err
	}

	g := &guest{pool: t.pool, accounts: accounts, history: session.NewHistory(accounts)}
	if err := g.renew(ctx); err != nil {
		return nil, err
	}

	enforced := enforcedLimits(accounts.Limits())
	return &session.Machine{
		Tier:     Name,
		Accounts: accounts,
		Guests:   map[tiers.Language]session.Guest{tiers.Go: g, tiers.Python: g},
		Lacks:    "it runs Go and Python only",
		Enforced: map[tiers.Language][]tiers.Enforcement{
			tiers.Go: enforced, tiers.Python: enforced,
		},
	}, nil
}

// enforcedLimits lists how each limit is enforced.
func enforcedLimits(l tiers.Limits) []tiers.Enforcement {
	return []tiers.Enforcement{
		{
			Limit:     tiers.LimitWall,
			Value:     l.Wall.String(),
			Mechanism: "the host's clock, every 2 ms; kill",
		},
		{
			Limit:     tiers.LimitActive,
			Value:     l.Active.String(),
			Mechanism: "the jail's processor time, every 20 ms, or the host's clock; kill",
		},
		{
			Limit:     tiers.LimitMemory,
			Value:     fmt.Sprintf("%d bytes", l.Memory),
			Mechanism: "the jail's limit, with 64 MiB for the worker itself; kill",
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
