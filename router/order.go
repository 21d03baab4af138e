package router

import (
	"cmp"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/abilities"
	"github.com/rlmhq/rlm/tiers"
)

// Step is one tier in a chain.
//
// Compute is considered only for a snippet that would compute for two seconds or more in the tier
// that would otherwise come first. The chain is then ordered by total cost if that at least halves
// the cost of the first step, and the home no longer comes first.
type Step struct {
	Tier string `json:"tier"`
	// Home reports that the namespace already lives in the tier.
	Home bool `json:"home,omitempty"`
	// Run is the cost of a snippet in the tier, including the start of a sandbox if there is none.
	// Move is the cost of moving the namespace to the tier. Compute is the snippet's computing time
	// in the tier, or 0 if that is not considered. All three are estimates.
	Run     time.Duration `json:"run_ns"`
	Move    time.Duration `json:"move_ns"`
	Compute time.Duration `json:"compute_ns,omitempty"`
	// Lacks are the modules that the snippet imports and the tier lacks, with the places of the
	// imports. Every other tier that may run the snippet lacks at least as many. If the snippet
	// reaches the import, it raises ModuleNotFoundError.
	Lacks []string `json:"lacks,omitempty"`
}

// cost returns the total cost of the step.
func (s Step) cost() time.Duration { return s.Run + s.Move + s.Compute }

// The cost of a move: one sandbox stops, another starts, and the namespace is pickled, copied
// and unpickled.
const (
	moveBase = 5 * time.Millisecond
	moveRate = 100 << 20 // bytes per second
)

// longComputing is the minimum computing time for which a faster tier is considered. A shorter
// snippet does not justify a tier in which each further snippet costs more.
const longComputing = 2 * time.Second

// stepTo returns the step of running a snippet in a tier.
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

// computingTime returns the time that a tier takes for a computation that takes the given time in
// native code.
func computingTime(info *tiers.Info, l tiers.Language, native time.Duration) time.Duration {
	slowdown := info.Cost.Slowdown[l]
	if slowdown <= 0 {
		return native
	}
	return time.Duration(float64(native) * slowdown)
}

// orderChain puts the home first and the others in order of cost. If the snippet computes for
// long, a faster tier comes before all others.
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
	case s.MaxActive > 0 && best.Compute > s.MaxActive: // no tier would finish the snippet
	default:
		slices.SortStableFunc(steps, byCost)
		p.ForSpeed = true
	}
}

// compareWeight orders tiers for refusals and ties: tiers used on request come last, and tiers with
// part of a language before those with all of it. The rest is ordered by start time, then by
// isolation, strongest first.
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
