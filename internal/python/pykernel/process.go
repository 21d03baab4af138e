package pykernel

import (
	"context"
	"errors"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// Process is a CPython process with the runtime loaded, and the wall around it, as started by a
// tier.
type Process interface {
	// Connection returns the connection to the runtime in the process.
	Connection() *session.Connection
	// OutOfMemory reports whether the kernel killed any part of the process for lack of memory
	// since the last call. isBad means that the last run ended badly.
	OutOfMemory(isBad bool) bool
	// Peak returns the peak memory use of the process, in bytes. own is the guest's own report, or
	// 0 after a bad end.
	Peak(own int64) int64
	// Fault returns the reason why the process ended, if the snippet had nothing to do with it.
	Fault() error
	// Close ends the process and waits for its end.
	Close() error
}

// Guest is a Python session in a process. When the process must be stopped, a copy of the process
// takes over with the state before the last snippet that was saved, or a new process starts from
// scratch.
type Guest struct {
	// Tier is the tier's name.
	Tier string
	// Accounts are the session's accounts.
	Accounts *session.Accounts
	// Start starts a process for the session.
	Start func(ctx context.Context) (Process, error)
	// MustOutlive makes even the first snippet leave a copy behind, because the process has files
	// that must survive a snippet that must be killed.
	MustOutlive bool

	process Process
	flags   int       // for the next run
	knows   int       // configuration version of the process
	kept    int       // configuration version of the copy
	isFresh bool      // nothing has run in the process, so another one would be as good
	savedAt time.Time // when the last copy was left behind
	save    bool      // whether the next run leaves a copy behind
	ended   error     // how the last run ended the process, or nil
}

var (
	_ session.Guest = (*Guest)(nil)
	_ session.Mover = (*Guest)(nil)
)

// Process returns the process of the session, or nil.
func (g *Guest) Process() Process { return g.process }

// Renew starts a process to replace one that is gone.
func (g *Guest) Renew(ctx context.Context) error {
	if err := g.Close(); err != nil {
		return err
	}

	p, err := g.Start(ctx)
	if err != nil {
		return err
	}
	g.process, g.savedAt, g.isFresh = p, time.Time{}, true
	g.flags, g.knows, g.kept = wire.FlagReseed, 0, 0
	return nil
}

// saveCost is the cost of leaving a copy behind. A copy is made if this cost is at most 1/saveShare
// of the time since the last copy, so a session that waits for a model always has one.
const (
	saveCost  = 4 * time.Millisecond
	saveShare = 20
)

// Prepare starts a process if there is none.
func (g *Guest) Prepare(
	ctx context.Context, _ session.Snippet, mustSave bool,
) (*tiers.Loss, error) {
	if g.process == nil {
		if err := g.Renew(ctx); err != nil {
			return nil, err
		}
	}

	isCheap := time.Since(g.savedAt) >= saveShare*saveCost
	g.save = (!g.isFresh || g.MustOutlive) && (mustSave || isCheap)

	return nil, nil //nolint:nilnil // nothing is lost
}

// Run runs a snippet.
func (g *Guest) Run(ctx context.Context, s session.Snippet) session.Ending {
	wasFresh := g.isFresh
	done := g.execute(s)
	if wasFresh && g.hasDiedWaiting(ctx) {
		if err := g.Renew(ctx); err != nil {
			g.Accounts.Fail(err)
			return session.Ending{Code: session.Died, IsGone: true}
		}
		done = g.execute(s)
	}

	if g.ended != nil {
		done.Code = session.Died
	}
	if g.process.OutOfMemory(done.Code < 0) || g.Accounts.RanOutOfMemory() {
		g.Accounts.Refuse(tiers.LimitMemory)
	}
	return session.Ending{
		Code: done.Code, IsGone: g.ended != nil, Crash: crash,
		PeakMemory: g.process.Peak(done.Peak),
	}
}

var crash = tiers.Exception{
	Type: "InterpreterCrash", Message: "its process ended",
	Traceback: "the snippet broke its interpreter: its process ended\n",
}

// hasDiedWaiting reports whether the process died before it began its session's first snippet, so
// that any other process can run the snippet.
func (g *Guest) hasDiedWaiting(ctx context.Context) bool {
	return errors.Is(g.ended, session.ErrGone) && !g.connection().HasBegun() &&
		ctx.Err() == nil && !g.Accounts.Watch(nil)
}

func (g *Guest) execute(s session.Snippet) wire.Done {
	if g.save {
		g.savedAt = time.Now()
	}
	order := wire.Order{Flags: s.Ordinal << wire.OrdinalShift, Save: g.save, Source: s.Source}
	return g.runConfigured(order, s.Ordinal-1)
}

// runConfigured makes the guest carry out an order for the session. The guest first requests any
// configuration that it does not have yet.
func (g *Guest) runConfigured(order wire.Order, before int) wire.Done {
	order.Flags |= g.flags
	if order.Save {
		g.kept = g.knows
	}
	if latest := g.Accounts.Configuration(); g.knows != latest {
		order.Flags |= wire.FlagConfigure
		g.knows = latest
	}
	g.isFresh = false

	done := g.run(g.Accounts, order, before)
	if g.ended == nil {
		g.flags = 0
	}
	return done
}

func (g *Guest) run(a *session.Accounts, order wire.Order, before int) wire.Done {
	done, err := g.connection().Run(a, order, before)
	g.ended = err
	return done
}

func (g *Guest) connection() *session.Connection { return g.process.Connection() }

// Heal checks the interpreter if the snippet may have damaged it. An interpreter that is damaged,
// or had to be stopped, returns to the last saved state.
func (g *Guest) Heal(
	ctx context.Context, s session.Snippet, isOrderly bool,
) (session.Healed, error) {
	if isOrderly && g.isHealthy(ctx, s.Source) {
		return session.Healed{Kept: s.Ordinal}, nil
	}

	return g.restore(ctx)
}

// restore returns to the last saved state, or to an empty one.
func (g *Guest) restore(ctx context.Context) (session.Healed, error) {
	if g.process == nil { // it could not be started
		return session.Healed{}, g.Renew(ctx)
	}
	if g.ended == nil {
		g.ended = g.connection().Discard()
	}

	healed := session.Healed{Fault: g.process.Fault()}
	if errors.Is(g.ended, session.ErrRestored) {
		healed.Kept = g.connection().Kept()
		g.flags, g.knows = wire.FlagReseed, g.kept
		return healed, nil
	}
	return healed, g.Renew(ctx)
}

func (g *Guest) isHealthy(ctx context.Context, source string) bool {
	if !NeedsCheckup(source) {
		return true
	}
	return IsHealthy(ctx, func(own *session.Accounts, source string) (int, error) {
		done := g.run(own, wire.Order{Source: source}, 0)
		return done.Code, g.ended
	})
}

// Export returns the namespace for another tier. It leaves a copy behind, because a variable whose
// export cannot be stopped must not cost the session the other variables.
func (g *Guest) Export(ctx context.Context) (tiers.State, error) {
	if g.process == nil {
		return tiers.State{}, session.ErrClosed
	}
	return g.Accounts.ExportState(ctx, g.Tier, g.runState(true))
}

// Import restores, in a fresh session, a namespace from another tier.
func (g *Guest) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	if g.process == nil {
		return tiers.Report{}, session.ErrClosed
	}
	return g.Accounts.ImportState(ctx, g.Tier, state, g.runState(false))
}

// runState returns a function that runs the guest outside a snippet.
func (g *Guest) runState(save bool) session.Runner {
	return func(source string, flags int) (int, error) {
		order := wire.Order{Flags: flags, Save: save, Source: source}
		done := g.runConfigured(order, g.Accounts.Ordinal())
		if errors.Is(g.ended, session.ErrRestored) {
			g.flags, g.knows = wire.FlagReseed, g.kept
		}
		return done.Code, g.ended
	}
}

// RunAside runs source without charging the session's accounts. If it ends badly, the session
// returns to an earlier state, as after a snippet.
func (g *Guest) RunAside(
	ctx context.Context, limits tiers.Limits, source string,
) (tiers.Result, error) {
	if g.process == nil {
		return tiers.Result{}, session.ErrClosed
	}
	own, err := session.NewAccounts(ctx, tiers.Config{Limits: limits})
	if err == nil {
		err = own.Begin(ctx, tiers.Job{})
	}
	if err != nil {
		return tiers.Result{}, err
	}

	g.isFresh = false
	done := g.run(own, wire.Order{Flags: g.flags, Source: source}, 0)
	if g.ended == nil {
		g.flags = 0
		return own.End(done.Code), nil
	}

	r := own.End(session.Died)
	healed, err := g.restore(context.WithoutCancel(ctx))
	return r, errors.Join(err, context.Cause(ctx), healed.Fault)
}

// Close ends the process. It is idempotent.
func (g *Guest) Close() error {
	if g.process == nil {
		return nil
	}
	err := g.process.Close()
	g.process = nil
	return err
}
