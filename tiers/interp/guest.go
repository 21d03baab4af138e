package interp

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/worker"
)

// guest is a session in a worker. It replaces a worker that hangs, grows too large or dies, and
// reruns the session's earlier snippets in the new one.
type guest struct {
	pool     *pool
	accounts *session.Accounts
	history  *session.History

	process *process // nil after a failed restore
	knows   int      // the version of the process's configuration; 0 if it has run nothing
	report  worker.Report
	hasRun  bool // whether the last snippet ran and belongs to the namespace
}

var (
	_ session.Guest = (*guest)(nil)
	_ session.Mover = (*guest)(nil)
)

// renew acquires a fresh worker for the session.
func (g *guest) renew(ctx context.Context) error {
	if err := g.Close(); err != nil {
		return err
	}

	p, err := g.pool.take(ctx, g.accounts.Limits().Memory)
	if err != nil {
		return err
	}

	g.process, g.knows = p, 0
	return nil
}

// Prepare acquires a worker if the session has none. An interpreter accepts inputs and functions
// only once, so Prepare replaces a worker whose configuration is outdated.
func (g *guest) Prepare(ctx context.Context, s session.Snippet, _ bool) (*tiers.Loss, error) {
	if s.Language == tiers.Go && g.accounts.Config().Deterministic {
		return nil, reject("determinism", "Go in this tier is not deterministic")
	}
	if g.process == nil {
		return nil, g.renew(ctx)
	}
	if g.knows == 0 || g.knows == g.version() {
		return nil, nil //nolint:nilnil // nothing is lost
	}

	if err := g.replay(ctx); err != nil {
		return nil, fmt.Errorf("cannot add to the session: %w", err)
	}
	return nil, nil //nolint:nilnil // as above
}

// version returns the number of the configuration, from 1.
func (g *guest) version() int { return 1 + g.accounts.Configuration() }

// CanRepeat implements [session.Repeater].
func (g *guest) CanRepeat() bool { return true }

// Run runs a snippet.
func (g *guest) Run(ctx context.Context, s session.Snippet) session.Ending {
	g.history.Record(session.TapeOf(ctx))
	g.hasRun = false
	done, err := g.run(s.Language, s.Source, s.Ordinal)
	ending := session.Ending{Code: done.Code, IsGone: err != nil, PeakMemory: g.peak(done)}
	if err != nil {
		ending.Code, ending.Crash = session.Died, g.examine()
		return ending
	}

	//nolint:errorlint // Run returns it unwrapped
	rejected, _ := reject(g.report.Missing, "%s", g.report.Reason).(*tiers.RejectedError)
	switch {
	case done.Code != wire.CodeRejected:
		g.hasRun = true
	case g.report.IsInvalid && !s.Rejectable: // the snippet itself may be invalid
		ending.Code = wire.CodeRaised
	default:
		ending.Rejected = rejected
	}

	return ending
}

// run makes the worker run source as the session's snippet with the given number.
func (g *guest) run(language tiers.Language, source string, number int) (wire.Done, error) {
	order := wire.Order{Source: source, Flags: number << wire.OrdinalShift}
	if language == tiers.Go {
		order.Flags |= wire.FlagGo
	}
	if g.knows == 0 {
		order.Flags |= wire.FlagConfigure
		g.knows = g.version()
	}

	done, err := g.process.connection.Run(g.accounts, order, 0)
	if err != nil {
		return done, err
	}
	isKnown := done.Code == wire.CodeOK || done.Code == wire.CodeRaised ||
		done.Code == wire.CodeRejected

	g.report = worker.Report{}
	if !isKnown || frame.DecodeJSON(done.More, &g.report) != nil {
		g.process.isRude = true
		g.process.Kill(0)
		return done, session.ErrGone
	}
	return done, nil
}

// peak returns the worker's highest memory use, in bytes. A live worker reports it, and the
// limit bounds the report.
func (g *guest) peak(done wire.Done) int64 {
	most := g.accounts.Limits().Memory + overhead
	return max(g.process.jail.Usage().PeakMemory, min(max(0, done.Peak), most))
}

// examine describes why the worker died. The worker's last output is hostile and only affects
// the wording.
func (g *guest) examine() tiers.Exception {
	exit := g.process.end()
	death := jail.FindDeath(g.process.jail.Output())
	if death.Cause == "" {
		death.Cause, death.Line = "InterpreterCrash", exit.String()
	}

	switch {
	case exit.OOM || death.Cause == jail.OutOfMemory:
		g.accounts.Refuse(tiers.LimitMemory)
	case exit.Signal == jail.CPUTimeSignal:
		g.accounts.Fire(tiers.LimitActive)
	case g.process.isRude || g.process.connection.IsRude():
		death.Line = wire.ErrMessage.Error()
	}

	message := death.Message()
	return tiers.Exception{
		Type: death.Cause, Message: message,
		Traceback: fmt.Sprintf("the snippet broke its interpreter: %s\n", message),
	}
}

// Heal adds a snippet that ended by itself to the session's history. If the namespace no longer
// matches the history, Heal rebuilds it.
func (g *guest) Heal(
	ctx context.Context, s session.Snippet, isOrderly bool,
) (session.Healed, error) {
	if isOrderly && g.hasRun {
		past := session.Past{Ordinal: s.Ordinal, Language: s.Language, Source: s.Source}
		past.Changed = describeImpure(g.report.Impure)
		g.history.Add(past, g.accounts.LastVerdict())
	}
	if isOrderly && !g.report.IsDirty {
		return session.Healed{Kept: s.Ordinal}, nil
	}

	g.hasRun = false

	kept := s.Ordinal
	if !isOrderly {
		kept--
	}
	failure := g.replay(ctx)
	if failure == nil {
		return session.Healed{Kept: kept}, nil
	}

	g.history.Forget()
	return session.Healed{Why: failure.Error()}, g.renew(ctx)
}

// describeImpure returns the warning in reports and replays about a snippet that reads a clock
// or random numbers.
func describeImpure(why string) string {
	if why == "" {
		return ""
	}
	return "the snippet may give a different result when it runs again: " + why
}

// replay reruns the session's snippets in a fresh worker, and checks that each behaves as it did
// the first time.
func (g *guest) replay(ctx context.Context) error {
	if err := g.renew(ctx); err != nil {
		return err
	}

	for _, p := range g.history.Past() {
		if p.Changed != "" {
			return fmt.Errorf("snippet %d cannot be run again: %s", p.Ordinal, p.Changed)
		}
	}

	for i := range g.history.Past() {
		if isSame, _ := g.runAgain(ctx, i); !isSame {
			return fmt.Errorf(
				"snippet %d behaved differently when it was run again", g.history.Past()[i].Ordinal,
			)
		}
	}
	return nil
}

func (g *guest) runAgain(ctx context.Context, i int) (isSame, ended bool) {
	return g.history.RunAgain(ctx, i, func(p *session.Past) (string, bool) {
		done, err := g.run(p.Language, p.Source, p.Ordinal)
		if err != nil || done.Code == wire.CodeRejected {
			return "", false
		}
		p.Changed = describeImpure(g.report.Impure)
		return g.accounts.Verdict(done.Code), true
	})
}

// Export returns the session's snippets in the language of the last one.
func (g *guest) Export(context.Context) (tiers.State, error) {
	language := tiers.Python
	if past := g.history.Past(); len(past) > 0 {
		language = past[len(past)-1].Language
	}
	return g.history.Export(Name, language)
}

// Import runs the snippets of a state of this tier.
func (g *guest) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	isKnown := state.Language == tiers.Python || state.Language == tiers.Go
	if state.Format != session.FormatReplay || state.From != Name || !isKnown {
		return tiers.Report{}, rejectState(
			state, "it cannot read a state of format %q from %q", state.Format, state.From,
		)
	}

	if err := g.history.Adopt(state); err != nil {
		return tiers.Report{}, rejectState(state, "the state cannot be read: %v", err)
	}

	n := len(g.history.Past())
	for i := range n {
		isSame, ended := g.runAgain(ctx, i)
		if isSame && ended {
			continue
		}
		g.history.Forget()
		if err := g.renew(context.WithoutCancel(ctx)); err != nil {
			return tiers.Report{}, &tiers.BrokenError{
				Tier: Name, Effects: tiers.EffectsUnknown, Err: err,
			}
		}
		return tiers.Report{}, rejectState(
			state, "snippet %d of %d in the state does not run in this tier", i+1, n,
		)
	}

	g.accounts.ContinueAfter(state.Snippet)
	return tiers.Report{Moved: n, Left: state.Left}, nil
}

func rejectState(state tiers.State, format string, operands ...any) error {
	return reject("state "+state.Format, format, operands...)
}

// Close ends the worker.
func (g *guest) Close() error {
	if g.process != nil {
		g.pool.dismiss(g.process)
		g.process = nil
	}
	return nil
}
