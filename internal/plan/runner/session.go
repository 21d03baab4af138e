package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Extend adds either all of the inputs and functions to the session or none. They are available to
// the next snippet.
func (r *Runner) Extend(
	ctx context.Context, inputs []tiers.Input, functions []tiers.Function,
) error {
	leave, err := r.enter()
	if err != nil {
		return err
	}
	defer leave()
	inputs = slices.Clone(inputs)
	for i := range inputs {
		if err := adoptInput(ctx, &inputs[i]); err != nil {
			return fmt.Errorf("cannot use the input %q: %w", inputs[i].Name, err)
		}
	}

	for _, s := range r.spaces {
		if _, can := s.sandbox.(tiers.Extender); s.sandbox != nil && !can {
			return fmt.Errorf(
				"cannot add to the session: tier %s accepts inputs and functions only when it opens",
				s.tier,
			)
		}
	}
	for _, s := range r.spaces {
		if extender, can := s.sandbox.(tiers.Extender); can {
			if err := extender.Extend(ctx, inputs, functions); err != nil {
				return fmt.Errorf("cannot add to the session: %w", err)
			}
		}
	}

	r.cfg.Config.Inputs = slices.Concat(r.cfg.Config.Inputs, inputs)
	r.cfg.Config.Functions = protocol.Add(r.cfg.Config.Functions, functions)
	return nil
}

// Export returns the namespace of a language, for [Runner.Import] in another session. A session
// that has not run a snippet has no namespace.
func (r *Runner) Export(ctx context.Context, language tiers.Language) (tiers.State, error) {
	return r.export(ctx, language, exportState)
}

// ExportExact is like Export, with the exact state if the tier has one.
func (r *Runner) ExportExact(ctx context.Context, language tiers.Language) (tiers.State, error) {
	return r.export(ctx, language, func(ctx context.Context, from tiers.Sandbox) (tiers.State, error) {
		if exporter, can := from.(exactExporter); can {
			return exporter.ExportExact(ctx)
		}
		return exportState(ctx, from)
	})
}

func (r *Runner) export(
	ctx context.Context, language tiers.Language,
	export func(context.Context, tiers.Sandbox) (tiers.State, error),
) (tiers.State, error) {
	leave, err := r.enter()
	if err != nil {
		return tiers.State{}, err
	}
	defer leave()
	s := r.spaces[languageOf(language)]
	if s == nil || !s.used {
		return tiers.State{}, fmt.Errorf(
			"the session has run no snippet in %s", languageOf(language),
		)
	}

	state, err := export(ctx, s.sandbox)
	if err != nil {
		return tiers.State{}, asBroken(s.tier, tiers.EffectsNeverRan, err)
	}
	return state, nil
}

// Import imports namespaces into a session that has not run a snippet, and reports the values that
// were left behind. After an error, no namespace is imported. Each namespace goes to the tier that
// exported it, otherwise to the first tier of the policy that accepts it.
func (r *Runner) Import(ctx context.Context, states ...tiers.State) (tiers.Report, error) {
	leave, err := r.enter()
	if err != nil {
		return tiers.Report{}, err
	}
	defer leave()

	whole := tiers.Report{Exact: len(states) > 0}
	var opened []*space
	for _, state := range states {
		s := r.spaceOf(languageOf(state.Language))
		report, err := r.importNamespace(ctx, s, state)
		if err != nil {
			for _, s := range opened {
				err = errors.Join(err, s.sandbox.Close())
				delete(r.spaces, s.language)
			}
			return tiers.Report{}, err
		}

		opened = append(opened, s)
		whole.Moved += report.Moved
		whole.Left = append(whole.Left, report.Left...)
		whole.Exact = whole.Exact && report.Exact
		whole.Inexact = cmp.Or(whole.Inexact, report.Inexact)
	}
	return whole, nil
}

func (r *Runner) importNamespace(
	ctx context.Context, s *space, state tiers.State,
) (tiers.Report, error) {
	if s.sandbox != nil {
		return tiers.Report{}, errors.New("cannot restore a session that has run a snippet")
	}

	plan, err := r.planImport(ctx, s.language, state.From)
	if err != nil {
		return tiers.Report{}, err
	}
	refusals := plan.Refusals
	for _, step := range plan.Chain {
		i, _ := r.findTier(step.Tier)
		sandbox, report, err := r.openImported(ctx, s, r.cfg.Tiers[i], state, false)
		var rejected *tiers.RejectedError
		if errors.As(err, &rejected) {
			refusals = append(refusals, router.Refusal{
				Tier: step.Tier, Reason: rejected.Reason, Effects: rejected.Effects,
			})
			continue
		}
		if err != nil {
			return tiers.Report{}, err
		}

		s.sandbox, s.tier, s.used, s.restored = sandbox, step.Tier, true, true
		s.ran = state.Snippet
		return report, nil
	}
	return tiers.Report{}, &router.NoTierError{Refusals: refusals, Effects: tiers.EffectsNeverRan}
}

// planImport lists the tiers that may accept a namespace, starting with the tier that exported it,
// because a tier that runs only a part of its language may be the only one that can read the state.
func (r *Runner) planImport(
	ctx context.Context, language tiers.Language, from string,
) (router.Plan, error) {
	verdict := router.Verdict{Needs: &router.Needs{}}
	if len(r.cfg.Policy.Modules) > 0 { // the modules of a namespace cannot be checked
		verdict = router.Verdict{Unknown: "a session is restored"}
	}
	plan, err := r.planUsable(
		ctx, verdict, r.stateOf(language), func(p *router.Plan) int { return len(p.Chain) },
	)

	slices.SortStableFunc(plan.Chain, func(a, b router.Step) int {
		switch from {
		case a.Tier:
			return -1
		case b.Tier:
			return 1
		}
		return 0
	})
	return plan, err
}
