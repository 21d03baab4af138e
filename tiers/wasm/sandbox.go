package wasm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is one session. Its only guest is an interpreter in WebAssembly.
type sandbox struct {
	*session.Machine
	guest *guest
}

var (
	_ tiers.Sandbox   = (*sandbox)(nil)
	_ tiers.Forker    = (*sandbox)(nil)
	_ tiers.Exporter  = (*sandbox)(nil)
	_ tiers.Collector = (*sandbox)(nil)
)

func open(ctx context.Context, e *engine, cfg tiers.Config) (tiers.Sandbox, error) {
	accounts, err := session.NewAccounts(ctx, cfg)
	if err != nil {
		return nil, err
	}

	g := &guest{engine: e, accounts: accounts, savedAt: time.Now(), saveCost: firstSaveCost}
	if err := g.renew(ctx); err != nil {
		return nil, err
	}

	return newSandbox(g), nil
}

func newSandbox(g *guest) *sandbox {
	g.accounts.OfferMapping(g.mapText)
	return &sandbox{guest: g, Machine: &session.Machine{
		Tier:     Name,
		Accounts: g.accounts,
		Guests:   map[tiers.Language]session.Guest{tiers.Python: g},
		Lacks:    "it runs Python only",
		Enforced: map[tiers.Language][]tiers.Enforcement{
			tiers.Python: enforcedLimits(g.accounts.Config().Limits, g.engine.name),
		},
	}}
}

// enforcedLimits lists how each limit is enforced.
func enforcedLimits(l tiers.Limits, engine string) []tiers.Enforcement {
	const clock = "the host's clock, read at each fuel slice, several times a millisecond; " +
		"KeyboardInterrupt, then kill"
	return []tiers.Enforcement{
		{Limit: tiers.LimitWall, Value: l.Wall.String(), Mechanism: clock},
		{Limit: tiers.LimitActive, Value: l.Active.String(), Mechanism: clock},
		{
			Limit:     tiers.LimitMemory,
			Value:     fmt.Sprintf("%d bytes", l.Memory),
			Mechanism: "the linear memory does not grow beyond it; MemoryError",
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
		{
			Limit: tiers.LimitFuel,
			Value: fmt.Sprintf("%d units", l.Fuel),
			Mechanism: "loop turns and copied bytes, counted in the guest's machine code (" +
				engine + "); KeyboardInterrupt, then kill",
		},
	}
}

// Fork returns a copy of the sandbox in its current state.
func (s *sandbox) Fork(ctx context.Context) (tiers.Sandbox, error) {
	leave, err := s.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if s.IsClosed() || s.guest.in == nil {
		return nil, session.ErrClosed
	}
	accounts, err := s.Accounts.CopyFor(ctx)
	if err != nil {
		return nil, err
	}

	copied := &guest{
		engine:   s.guest.engine,
		accounts: accounts,
		savedAt:  time.Now(),
		saveCost: s.guest.saveCost,
	}

	if accounts.Ordinal() > 0 {
		copied.saved = &checkpoint{}
		if err := copied.saved.take(s.guest.in, s.guest.knows); err != nil {
			return nil, err
		}
	}
	if err := copied.renew(ctx); err != nil {
		return nil, errors.Join(err, copied.Close())
	}

	return newSandbox(copied), nil
}

var errNoRoom = errors.New("the snippet's source does not fit into the sandbox's memory")
