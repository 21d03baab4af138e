package router

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rlmhq/rlm/tiers"
)

// Move says that the namespace went from one tier to another.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Report says how it went. Left holds what could not be exported, and what
	// could not be imported.
	Report tiers.Report `json:"report"`
}

// then joins a further move to m. Either may be nil.
func (m *Move) then(next *Move) *Move {
	switch {
	case m == nil:
		return next
	case next == nil:
		return m
	}
	left := slices.Concat(m.Report.Left, next.Report.Left)
	return &Move{From: m.From, To: next.To, Report: tiers.Report{Moved: next.Report.Moved, Left: left}}
}

// enter makes a tier the one whose sandbox holds the namespace, and returns the
// move if there was something to move. If it fails the namespace is where it
// was: a rejection means that the tier cannot take it, any other error that a
// tier broke.
func (r *Runner) enter(ctx context.Context, s *space, i int) (*Move, error) {
	tier, name := r.cfg.Tiers[i], r.candidates[i].Info.Name
	if s.sandbox != nil && s.tier == name {
		return nil, nil //nolint:nilnil // documented: nothing moved
	}
	next, report, err := r.bring(ctx, s, tier, name)
	if err != nil {
		return nil, err
	}
	r.candidates[i].Info = tier.Info() // what it has may be known only now
	old := *s
	s.sandbox, s.tier = next, name
	if old.sandbox == nil {
		return nil, nil //nolint:nilnil // documented: nothing moved
	}
	if err := old.sandbox.Close(); err != nil {
		r.cfg.Log.Warn().Err(err).Str("tier", old.tier).Msg("cannot close the old home")
	}
	if !old.used {
		return nil, nil //nolint:nilnil // documented: nothing moved
	}
	r.cfg.Log.Info().Str("from", old.tier).Str("to", name).Int("moved", report.Moved).Int("left", len(report.Left)).
		Msg("the namespace moved")
	return &Move{From: old.tier, To: name, Report: report}, nil
}

// bring opens a sandbox in a tier, with a copy of the namespace if there is one.
func (r *Runner) bring(ctx context.Context, s *space, tier tiers.Tier, name string) (tiers.Sandbox, tiers.Report, error) {
	var state tiers.State
	if s.used {
		var err error
		if state, err = export(ctx, s.sandbox); err != nil {
			return nil, tiers.Report{}, brokenBy(s.tier, tiers.EffectsNeverRan, fmt.Errorf("cannot export the session's variables: %w", err))
		}
	}
	cfg := r.cfg.Config
	cfg.Language = s.language
	next, err := tier.Open(ctx, cfg)
	if err != nil {
		return nil, tiers.Report{}, brokenBy(name, tiers.EffectsNeverRan, err)
	}
	if !s.used {
		return next, tiers.Report{}, nil
	}
	report, err := imported(ctx, next, state)
	if err != nil {
		err = brokenBy(name, tiers.EffectsNeverRan, fmt.Errorf("cannot import the session's variables: %w", err))
		if failed := next.Close(); failed != nil {
			r.cfg.Log.Warn().Err(failed).Str("tier", name).Msg("cannot close a sandbox")
		}
		return nil, tiers.Report{}, err
	}
	return next, report, nil
}

func export(ctx context.Context, from tiers.Sandbox) (tiers.State, error) {
	exporter, ok := from.(tiers.Exporter)
	if !ok {
		return tiers.State{}, errors.New("the tier has no export")
	}
	return exporter.Export(ctx)
}

// imported brings a state into a sandbox, and reports all that was left behind,
// at either end.
func imported(ctx context.Context, to tiers.Sandbox, state tiers.State) (tiers.Report, error) {
	importer, ok := to.(tiers.Exporter)
	if !ok {
		return tiers.Report{}, &tiers.RejectedError{
			Reason: "it cannot take a session's variables", Effects: tiers.EffectsNeverRan,
		}
	}
	report, err := importer.Import(ctx, state)
	if err != nil {
		return tiers.Report{}, err
	}
	left := slices.Clone(state.Left)
	for _, l := range report.Left {
		if !slices.Contains(left, l) { // a tier may repeat what the state says
			left = append(left, l)
		}
	}
	report.Left = left
	return report, nil
}

// copyOf copies a live sandbox: by its fork, or by a move into a second one of
// its tier, where nothing may be left behind.
func (r *Runner) copyOf(ctx context.Context, s *space) (tiers.Sandbox, error) {
	if forker, ok := s.sandbox.(tiers.Forker); ok {
		return forker.Fork(ctx)
	}
	i, _ := r.find(s.tier)
	sandbox, report, err := r.bring(ctx, s, r.cfg.Tiers[i], s.tier)
	if err != nil {
		return nil, err
	}
	if len(report.Left) > 0 {
		left := report.Left[0]
		return nil, errors.Join(fmt.Errorf("the variable %s (%s) cannot be copied: %s", oneLine(left.Name), oneLine(left.Type), oneLine(left.Reason)),
			sandbox.Close())
	}
	return sandbox, nil
}

// brokenBy makes an error of a tier a [*tiers.BrokenError], unless it is one or
// a rejection. Effects are for the errors that do not say.
func brokenBy(tier string, effects tiers.Effects, err error) error {
	var broken *tiers.BrokenError
	if errors.As(err, &broken) || rejection(err) != nil {
		return err
	}
	return &tiers.BrokenError{Tier: tier, Effects: effects, Err: err}
}
