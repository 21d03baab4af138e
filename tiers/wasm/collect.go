package wasm

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// Collect copies the files below /out into a folder of the host.
func (s *sandbox) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	leave, err := s.Enter()
	if err != nil {
		return tiers.Collected{}, err
	}
	defer leave()
	if s.IsClosed() || s.guest.in == nil {
		return tiers.Collected{}, session.ErrClosed
	}
	return pykernel.Collect(s.Accounts.Config(), dir, false,
		func(limits tiers.Limits, source string) (tiers.Result, error) {
			return s.guest.runAside(ctx, limits, source)
		})
}

// runAside runs source without involving the session's accounts. If it ends badly, the session
// returns to its last checkpoint.
func (g *guest) runAside(
	ctx context.Context, limits tiers.Limits, source string,
) (tiers.Result, error) {
	own, err := session.NewAccounts(ctx, tiers.Config{Limits: limits})
	if err == nil {
		err = own.Begin(ctx, tiers.Job{})
	}
	if err != nil {
		return tiers.Result{}, err
	}

	g.in.accounts = own
	flags := g.flags
	g.flags = 0
	code, err := g.in.run(ctx, source, flags)
	g.in.accounts = g.accounts
	result := own.End(code)
	if err != nil {
		return result, errors.Join(g.renew(context.WithoutCancel(ctx)), context.Cause(ctx))
	}
	return result, nil
}
