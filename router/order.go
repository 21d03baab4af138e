package router

import (
	"cmp"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/abilities"
	"github.com/rlmhq/rlm/tiers"
)

// Step is one tier of a chain.
//
// Compute counts only for a snippet that would compute for two seconds or more in the
// tier that is first without it. Then the chain is ordered by the whole cost, if that
// halves it; the home is first no longer.
type Step struct {
	Tier string `json:"tier"`
	// Home says that the namespace lives there already.
	Home bool `json:"home,omitempty"`
	// Run is what a snippet costs there, with the start of a sandbox if there is none;
	// Move is what bringing the namespace there costs; Compute is how long the snippet
	// computes there, 0 if that does not count. All are estimates.
	Run     time.Duration `json:"run_ns"`
	Move    time.Duration `json:"move_ns"`
	Compute time.Duration `json:"compute_ns,omitempty"`
	// Lacks are modules that the snippet imports and the tier does not have, with their
	// places. Every other tier that may run the snippet lacks at least as many. An import
	// that is reached raises ModuleNotFoundError.
	Lacks []string `json:"lacks,omitempty"`
}

// cost is what the step costs in all.
func (s Step) cost() time.Duration { return s.Run + s.Move + s.Compute }

// The cost of a move: one sandbox stops, another starts, and the namespace is pickled, copied
// and unpickled.
const (
	moveBase = 5 * time.Millisecond
	moveRate = 100 << 20 // bytes a second
)

// longComputing is the computing time from which a faster tier is considered. Shorter snippets
// are not worth a tier in which each further snippet costs more.
const longComputing = 2 * time.Second

// stepTo is what it takes to run a snippet in a tier.
func (s *Standing) stepTo(info *tiers.Info, needs *Needs) Step {
	step := Step{Tier: info.Name, Run: info.Cost.Snippet}
	if needs != nil {
		step.Compute = computingTime(info, s.Language, needs.Computes)
	}

	switch {
	case info.Name == s.Home:
		step.Home = true
		return step
	case !slices.Contains(s.Open, info.Name):
		step.Run = info.Cost.Start
	}

	if s.Home != "" {
		step.Move = moveBase + time.Duration(float64(s.Bytes)/moveRate*float64(time.Second))
	}
	return step
}

// computingTime is how long a tier computes what takes native code so long.
func computingTime(info *tiers.Info, l tiers.Language, native time.Duration) time.Duration {
	slowdown := info.Cost.Slowdown[l]
	if slowdown <= 0 {
		return native
	}
	return time.Duration(float64(native) * slowdown)
}

// orderChain puts the home first and the others by cost, and a faster tier before all if
// the snippet computes for long.
func (p *Plan) orderChain(s *Standing) {
	steps := p.Chain
	byCost := func(a, b Step) int { return cmp.Compare(a.cost(), b.cost()) }
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(compareBool(b.Home, a.Home), cmp.Compare(a.Run+a.Move, b.Run+b.Move))
	})

	if len(steps) == 0 || steps[0].Compute < longComputing {
		for i := range steps {
			steps[i].Compute = 0
		}
		return
	}

	best := slices.MinFunc(steps, byCost)
	switch {
	case s.Settled, best.cost() > steps[0].cost()/2:
	case s.MaxActive > 0 && best.Compute > s.MaxActive: // no tier gets to its end
	default:
		slices.SortStableFunc(steps, byCost)
		p.ForSpeed = true
	}
}

// compareWeight orders tiers for refusals and ties: those on request last, those that run
// a part of their language before the whole ones, then by start, stronger walls first.
func compareWeight(a, b Candidate) int {
	x, y := &a.Info, &b.Info
	return cmp.Or(
		compareBool(x.OnRequest, y.OnRequest),
		compareBool(abilities.RunsWholeLanguage(x), abilities.RunsWholeLanguage(y)),
		cmp.Compare(x.Cost.Start, y.Cost.Start),
		cmp.Compare(y.Isolation, x.Isolation),
		cmp.Compare(x.Name, y.Name),
	)
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
