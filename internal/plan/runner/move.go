package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// joinMoves appends another move to the first. Either may be nil.
func joinMoves(first, next *router.Move) *router.Move {
	switch {
	case first == nil:
		return next
	case next == nil:
		return first
	}

	left := slices.Concat(first.Report.Left, next.Report.Left)
	return &router.Move{
		From: first.From, To: next.To,
		Report: tiers.Report{Moved: next.Report.Moved, Left: left},
	}
}

// enterTier makes a tier the home of the namespace, and returns the move if there was anything to
// move. If it fails, the namespace has not moved: a rejection means that the tier cannot accept it,
// and any other error that a tier broke. If whole is set, enterTier also rejects a move that would
// leave a part of the namespace behind.
func (r *Runner) enterTier(ctx context.Context, s *space, i int, whole bool) (*router.Move, error) {
	tier, name := r.cfg.Tiers[i], r.candidates[i].Info.Name
	if s.sandbox != nil && s.tier == name {
		return nil, nil //nolint:nilnil // documented: nothing moved
	}

	next, report, err := r.openCopy(ctx, s, tier, whole)
	if err != nil {
		return nil, err
	}

	r.candidates[i].Info = r.describe(tier) // its modules may be known only now
	old := *s
	s.sandbox, s.tier = next, name
	if old.sandbox == nil {
		return nil, nil //nolint:nilnil // documented: nothing moved
	}

	if err := old.sandbox.Close(); err != nil {
		r.cfg.Log.Warn("cannot close the old home", "error", err, "tier", old.tier)
	}
	if !old.used {
		return nil, nil //nolint:nilnil // documented: nothing moved
	}

	r.cfg.Log.Info(
		"the namespace moved", "from", old.tier, "to", name, "moved", report.Moved, "left",
		len(report.Left),
	)
	return &router.Move{From: old.tier, To: name, Report: report}, nil
}

// openCopy opens a sandbox in a tier, with a copy of the namespace if there is one.
func (r *Runner) openCopy(
	ctx context.Context, s *space, tier tiers.Tier, whole bool,
) (tiers.Sandbox, tiers.Report, error) {
	var state tiers.State
	if s.used {
		var err error
		if state, err = exportState(ctx, s.sandbox); err == nil && whole {
			err = rejectLeft(state.Left)
		}
		if err != nil {
			err = fmt.Errorf("cannot export the session's variables: %w", err)
			return nil, tiers.Report{}, asBroken(s.tier, tiers.EffectsNeverRan, err)
		}
	}

	if !s.used {
		next, err := r.openSandbox(ctx, s.language, tier)
		return next, tiers.Report{}, err
	}
	return r.openImported(ctx, s, tier, state, whole)
}

// openImported opens a sandbox and imports a namespace into it.
func (r *Runner) openImported(
	ctx context.Context, s *space, tier tiers.Tier, state tiers.State, whole bool,
) (tiers.Sandbox, tiers.Report, error) {
	next, err := r.openSandbox(ctx, s.language, tier)
	if err != nil {
		return nil, tiers.Report{}, err
	}

	name := tier.Info().Name
	report, err := importState(ctx, next, state)
	if err == nil && whole {
		err = rejectLeft(report.Left)
	}
	if err == nil {
		return next, report, nil
	}

	err = fmt.Errorf("cannot import the session's variables: %w", err)
	if failed := next.Close(); failed != nil {
		r.cfg.Log.Warn("cannot close a sandbox", "error", failed, "tier", name)
	}
	return nil, tiers.Report{}, asBroken(name, tiers.EffectsNeverRan, err)
}

// openSandbox opens a sandbox with the session's configuration.
func (r *Runner) openSandbox(
	ctx context.Context, language tiers.Language, tier tiers.Tier,
) (tiers.Sandbox, error) {
	if err := r.adoptInputs(ctx); err != nil {
		return nil, asBroken(routerName, tiers.EffectsNeverRan, err)
	}
	cfg := r.cfg.Config
	cfg.Language = language

	sandbox, err := tier.Open(ctx, cfg)
	if err != nil {
		return nil, asBroken(tier.Info().Name, tiers.EffectsNeverRan, err)
	}
	return sandbox, nil
}

// adoptInputs copies the inputs implemented by other packages, so that all sandboxes of the session
// share one copy.
func (r *Runner) adoptInputs(ctx context.Context) error {
	if r.adopted {
		return nil
	}
	inputs := slices.Clone(r.cfg.Config.Inputs)
	for i := range inputs {
		if err := adoptInput(ctx, &inputs[i]); err != nil {
			return fmt.Errorf("cannot use input %d (%s): %w", i, inputs[i].Name, err)
		}
	}

	r.cfg.Config.Inputs, r.adopted = inputs, true
	return nil
}

func adoptInput(ctx context.Context, in *tiers.Input) error {
	if in.Text != nil {
		text, err := bigtext.Of(ctx, in.Text)
		if err != nil {
			return err
		}
		in.Text = text
	}

	if in.Dir != nil {
		dir, err := bigtext.DirOf(in.Dir)
		if err != nil {
			return err
		}
		in.Dir = dir
	}
	return nil
}

func exportState(ctx context.Context, from tiers.Sandbox) (tiers.State, error) {
	exporter, ok := from.(tiers.Exporter)
	if !ok {
		return tiers.State{}, errors.New("the tier cannot export variables")
	}
	return exporter.Export(ctx)
}

// exactExporter is a [tiers.Exporter] that can also export exact states.
type exactExporter interface {
	ExportExact(ctx context.Context) (tiers.State, error)
}

// importState imports a state into a sandbox, and reports everything that could not be exported or
// imported.
func importState(
	ctx context.Context, to tiers.Sandbox, state tiers.State,
) (tiers.Report, error) {
	importer, ok := to.(tiers.Exporter)
	if !ok {
		return tiers.Report{}, &tiers.RejectedError{
			Reason: "it cannot take a session's variables", Effects: tiers.EffectsNeverRan,
		}
	}

	report, err := importer.Import(ctx, state)
	if err != nil || report.Exact {
		return report, err
	}

	left := slices.Clone(state.Left)
	for _, l := range report.Left {
		if !slices.Contains(left, l) { // a tier may repeat an entry of the state
			left = append(left, l)
		}
	}

	report.Left = left
	return report, nil
}

// rejectLeft rejects a move that would leave variables behind.
func rejectLeft(left []tiers.Left) error {
	if len(left) == 0 {
		return nil
	}
	return &tiers.RejectedError{
		Effects: tiers.EffectsNeverRan,
		Reason: fmt.Sprintf("it is faster, but the variable %s (%s) cannot move to it: %s",
			texts.OneLine(left[0].Name), texts.OneLine(left[0].Type), texts.OneLine(left[0].Reason)),
	}
}

// copySandbox copies a live sandbox: by forking it, or by a move into a second sandbox of its tier,
// in which case nothing may be left behind.
func (r *Runner) copySandbox(ctx context.Context, s *space) (tiers.Sandbox, error) {
	if forker, ok := s.sandbox.(tiers.Forker); ok {
		return forker.Fork(ctx)
	}
	i, _ := r.findTier(s.tier)
	sandbox, report, err := r.openCopy(ctx, s, r.cfg.Tiers[i], false)
	if err != nil {
		return nil, err
	}

	if len(report.Left) > 0 {
		left := report.Left[0]
		err := fmt.Errorf("the variable %s (%s) cannot be copied: %s",
			texts.OneLine(left.Name), texts.OneLine(left.Type), texts.OneLine(left.Reason))
		return nil, errors.Join(err, sandbox.Close())
	}
	return sandbox, nil
}
