package wasm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// guest is one session's interpreter, and the state from which it can be restored.
type guest struct {
	engine   *engine
	accounts *session.Accounts
	in       *instance // nil if it could not be replaced
	flags    int       // for the next run
	knows    int       // the version of the instance's configuration

	// isRestored reports that the instance holds the pages of an exact state and has run no
	// snippet.
	isRestored bool

	// imported is the state that Import loaded; nil once there is a newer checkpoint. It serves
	// instead of a checkpoint, which a guest that survives its next snippet never needs.
	imported *tiers.State
	saved    *checkpoint   // nil means the fresh sandbox
	savedAt  time.Time     // when saved was taken
	saveCost time.Duration // the time that taking saved took
}

var (
	_ session.Guest      = (*guest)(nil)
	_ session.ExactMover = (*guest)(nil)
)

// saveShare bounds the cost of checkpoints. A checkpoint may take at most 1/saveShare of the time
// since the last one. So a session that waits for a model always takes one, and a tight loop of
// snippets rarely does.
const (
	firstSaveCost = 500 * time.Microsecond
	saveShare     = 20
)

// renew replaces the instance with a new one, restored from the last checkpoint or the imported
// state.
func (g *guest) renew(ctx context.Context) error {
	if g.in != nil {
		g.in.close()
		g.in = nil
	}

	in, err := g.engine.instantiate(ctx, g.accounts, g.saved)
	if err != nil {
		return err
	}

	g.in, g.flags, g.knows, g.isRestored = in, wire.FlagReseed, 0, false
	if g.saved != nil {
		g.knows = g.saved.knows
	}
	if g.imported == nil {
		return nil
	}
	if err := g.importAgain(ctx); err != nil {
		g.in.close()
		g.in = nil
		return fmt.Errorf("cannot return to the state that was brought in: %w", err)
	}
	return nil
}

// importAgain loads the imported state into a new instance. The session's own accounts hold the
// result of the snippet that ended the last instance, so other accounts answer the guest in the
// meantime.
func (g *guest) importAgain(ctx context.Context) error {
	accounts, err := g.accounts.CopyFor(ctx)
	if err != nil {
		return err
	}
	accounts.OfferMapping(g.mapText)
	g.in.accounts = accounts
	_, err = accounts.ImportState(ctx, Name, *g.imported, g.runState(ctx))
	g.in.accounts = g.accounts
	return err
}

// kept returns the number of the last snippet in the state that renew restores, or 0 for a fresh
// sandbox.
func (g *guest) kept() int {
	switch {
	case g.imported != nil:
		return g.imported.Snippet
	case g.saved != nil:
		return g.saved.snippet
	}
	return 0
}

// Prepare creates an instance if there is none, and takes a checkpoint. It returns an error if
// no guest may run now; the session then keeps its variables for a later attempt.
func (g *guest) Prepare(
	ctx context.Context, _ session.Snippet, mustSave bool,
) (*tiers.Loss, error) {
	if err := g.engine.program.Check(); err != nil {
		return nil, err
	}
	if g.in == nil {
		if err := g.renew(ctx); err != nil {
			return nil, err
		}
	}
	if g.in.room < roomForTexts(g.accounts, g.in.limit) { // a context has been added
		if err := errors.Join(g.save(), g.renew(ctx)); err != nil {
			return nil, err
		}
	}

	last := g.accounts.Ordinal()
	isSaved := g.kept() == last
	if !isSaved && (mustSave || time.Since(g.savedAt) >= saveShare*g.saveCost) {
		if err := g.save(); err != nil && mustSave {
			return nil, err
		} else if err != nil {
			g.engine.options.Log.Warn("a session keeps its older checkpoint", "error", err)
		}
	}

	return nil, nil //nolint:nilnil // nothing is lost
}

// save takes a checkpoint in place of the last one. After an error, the last one is still valid.
func (g *guest) save() error {
	begun := time.Now()
	c := g.saved
	if c == nil {
		c = &checkpoint{}
	}
	if err := c.take(g.in, g.knows); err != nil {
		return err
	}

	g.saved, g.savedAt, g.imported = c, time.Now(), nil
	g.saveCost = g.savedAt.Sub(begun)
	return nil
}

// Run runs a snippet.
func (g *guest) Run(ctx context.Context, s session.Snippet) session.Ending {
	g.in.watch.peak, g.in.watch.refused = g.in.mem.own(), false
	g.in.course, g.isRestored = newCourse(s.Job), false
	endTape := g.beginTape(session.TapeOf(ctx))
	code, err := g.runConfigured(ctx, s.Source, s.Ordinal<<wire.OrdinalShift)
	endTape()
	g.in.course = course{}
	if g.in.watch.refused {
		g.accounts.Refuse(tiers.LimitMemory)
	}

	cause := describeDeath(err)
	return session.Ending{
		Code: code, IsGone: err != nil,
		Crash: tiers.Exception{
			Type: "InterpreterCrash", Message: cause,
			Traceback: "the snippet broke its interpreter: " + cause + "\n",
		},
		Fuel: g.in.fuelUsed(), PeakMemory: int64(g.in.watch.peak), //nolint:gosec // at most 4 GiB
	}
}

// CanRepeat implements [session.Repeater]. Under wazero and in deterministic mode, guests have
// their own clocks and randomness, which a tape cannot record.
func (g *guest) CanRepeat() bool {
	return g.engine.name == engineAOT && !g.accounts.Config().Deterministic
}

// beginTape makes the guest use a tape, which may be nil, until end is called.
func (g *guest) beginTape(t *session.Tape) (end func()) {
	if t == nil || !g.CanRepeat() {
		return func() {}
	}
	g.accounts.UseTape(t)
	if g.in.course.random == nil {
		g.in.course.random = t.Random()
	}
	return func() { g.accounts.UseTape(nil) }
}

// runConfigured runs the guest after making it fetch changes of the session's configuration.
func (g *guest) runConfigured(ctx context.Context, source string, flags int) (code int, err error) {
	flags |= g.flags
	if latest := g.accounts.Configuration(); g.knows != latest {
		flags |= wire.FlagConfigure
		g.knows = latest
	}
	g.flags = 0

	return g.in.run(ctx, source, flags)
}

// describeDeath describes why the guest ended.
func describeDeath(err error) string {
	var exit exitError
	switch {
	case err == nil:
		return "its runtime was damaged"
	case errors.As(err, &exit):
		return fmt.Sprintf("it ended the process with exit code %d", exit.code)
	}

	text := err.Error()
	for i, c := range text {
		if c == '\n' || c == '(' && i > 0 {
			return text[:i]
		}
	}

	return text
}

// Heal checks the interpreter after a snippet. If it is damaged or dead, Heal restores the last
// checkpoint.
func (g *guest) Heal(
	ctx context.Context, s session.Snippet, isOrderly bool,
) (session.Healed, error) {
	if isOrderly && g.isHealthy(ctx, s.Source) {
		return session.Healed{Kept: s.Ordinal}, nil
	}

	return session.Healed{Kept: g.kept()}, g.renew(ctx)
}

func (g *guest) isHealthy(ctx context.Context, source string) bool {
	wasCutShort := g.in.code < 0
	if !wasCutShort && !pykernel.NeedsCheckup(source) {
		return true
	}
	if wasCutShort {
		// The interrupt may have hit the runtime when half of a line was still buffered. The first
		// check-up writes the rest.
		g.checkUp(ctx)
	}

	return g.checkUp(ctx)
}

func (g *guest) checkUp(ctx context.Context) bool {
	defer func() { g.in.accounts = g.accounts }()
	return pykernel.IsHealthy(ctx, func(own *session.Accounts, source string) (int, error) {
		g.in.accounts = own
		return g.in.run(ctx, source, 0)
	})
}

// Export returns the namespace for another tier.
func (g *guest) Export(ctx context.Context) (tiers.State, error) {
	if g.in == nil {
		return tiers.State{}, session.ErrClosed
	}

	if err := g.saveLast(); err != nil {
		return tiers.State{}, err
	}
	return g.exportSaved(ctx)
}

// saveLast takes a checkpoint after the last snippet, unless there is one already. So exporting the
// same state again yields the same bytes.
func (g *guest) saveLast() error {
	c := g.saved
	if c != nil && g.imported == nil && c.snippet == g.accounts.Ordinal() && c.knows == g.knows {
		return nil
	}
	return g.save()
}

// exportSaved exports the variables. A variable that hangs during the export must not cost the
// others, so the caller takes a checkpoint first.
func (g *guest) exportSaved(ctx context.Context) (tiers.State, error) {
	if g.isRestored { // its randomness is still the state's; the next snippet reseeds it
		defer func(flags int) { g.flags = flags }(g.flags)
		g.flags &^= wire.FlagReseed
	}

	state, err := g.accounts.ExportState(ctx, Name, g.runState(ctx))
	if err != nil {
		err = errors.Join(err, g.renew(context.WithoutCancel(ctx)))
	}

	return state, err
}

// Import loads a namespace into a fresh sandbox: the pages of another guest of this tier if they
// fit, otherwise the variables. It keeps the state's bytes instead of a checkpoint, which would be
// larger.
func (g *guest) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	if g.in == nil {
		return tiers.Report{}, session.ErrClosed
	}

	inexact := ""
	if len(state.Exact) > 0 {
		report, why, err := g.importExact(ctx, &state)
		if why == nil {
			return report, err
		}
		g.engine.options.Log.Info("a session continues with its variables only", "reason", why)
		inexact = why.Error()
		state.Exact = nil // g.imported does not need it
	}

	end := g.in.mem.expect(uint64(len(state.Data)))
	report, err := g.accounts.ImportState(ctx, Name, state, g.runState(ctx))
	end()
	switch {
	case err != nil: // part of the state may be loaded, and a guest that died must not be recycled
		err = errors.Join(err, g.renew(context.WithoutCancel(ctx)))
	case state.Format == session.FormatPickle:
		g.imported = &state
	default: // rerunning its snippets would count them again
		err = g.save()
	}
	report.Inexact = inexact
	return report, err
}

// runState returns a function that runs the guest outside a snippet.
func (g *guest) runState(ctx context.Context) session.Runner {
	return func(source string, flags int) (int, error) {
		return g.runConfigured(ctx, source, flags)
	}
}

// Close returns the instance to the engine, and the checkpoint's memory to the system.
func (g *guest) Close() error {
	g.saved.free()
	g.saved, g.imported = nil, nil
	if g.in != nil {
		g.in.retire()
		g.in = nil
	}
	return nil
}
