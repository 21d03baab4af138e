package runs

import (
	"context"

	"github.com/rlmhq/rlm/server/internal/access"
)

// noMoney is the amount that free work sets aside, because 0 would set the whole budget aside.
const noMoney = 1e-9

// Work runs work that asks no model like a run of a key: it counts as an active run, waits for its
// turn among the tenants, and delays the server's shutdown until it ends. The context of work ends
// when the server stops waiting. The error is for the client.
func (m *Manager) Work(ctx context.Context, k access.Key, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.life, func() { cancel(errDrained) })()

	turn, err := m.enlist(m.runs, k.Tenant, false)
	if err != nil {
		return err
	}
	defer turn.leave()
	hold, err := m.Meter.Begin(ctx, &k, noMoney)
	if err != nil {
		return err
	}
	defer hold.Release()
	if err := turn.enter(ctx); err != nil {
		return err
	}
	return work(ctx)
}
