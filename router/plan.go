package router

import (
	"cmp"
	"slices"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Candidate is a tier as the plan sees it.
type Candidate struct {
	// Info is what the tier is and has.
	Info tiers.Info
	// Unusable is why the tier is not usable on this machine, nil if it is.
	Unusable error
}

// State is where the session's namespace of one language stands before a
// snippet.
type State struct {
	// Language of the snippet.
	Language tiers.Language
	// Home is the tier in which the namespace lives, empty if no snippet ran yet.
	Home string
	// Fixed says that the namespace cannot leave its home.
	Fixed bool
	// Bytes is how large the namespace may be at most.
	Bytes int64
	// Open are the tiers in which a sandbox waits that has run no snippet yet.
	Open []string
	// Rejected is what tiers said that rejected this very snippet.
	Rejected []tiers.RejectedError
	// Wants are what the session's configuration asks of every tier, whatever the
	// snippet needs.
	Wants []tiers.Feature
}

// Plan is the decision about one snippet, and its reasons.
type Plan struct {
	// Language of the snippet.
	Language tiers.Language `json:"language"`
	// Home is the tier in which the namespace lives, empty if there is none yet.
	Home string `json:"home,omitempty"`
	// Needs, Invalid and Unknown are the analyser's verdict. Invalid is the
	// exception that the snippet's language has for it, in one line.
	Needs   *Needs `json:"needs,omitempty"`
	Invalid string `json:"invalid,omitempty"`
	Unknown string `json:"unknown,omitempty"`
	// Chain are the tiers that may run the snippet, in the order to try them.
	Chain []Step `json:"chain"`
	// Refusals are the tiers that may not, in the tiers' order.
	Refusals []Refusal `json:"refusals,omitempty"`
}

// Step is one tier of a chain.
type Step struct {
	Tier string `json:"tier"`
	// Home says that the namespace lives there already.
	Home bool `json:"home,omitempty"`
	// Run is what a snippet costs there, with the start of a sandbox if there is
	// none; Move is what bringing the namespace there costs. Both are estimates.
	Run  time.Duration `json:"run_ns"`
	Move time.Duration `json:"move_ns"`
}

// Cost is what the step costs in all.
func (s Step) Cost() time.Duration { return s.Run + s.Move }

// Refusal is the reason why a tier may not run a snippet.
type Refusal struct {
	Tier   string `json:"tier"`
	Reason string `json:"reason"`
}

// Err returns a [*NoTierError] if no tier may run the snippet. A snippet that is
// not of its language needs none.
func (p *Plan) Err() error {
	if len(p.Chain) > 0 || p.Invalid != "" {
		return nil
	}
	return &NoTierError{Refusals: p.Refusals, Effects: tiers.EffectsNeverRan}
}

// What a move costs: a sandbox stops and another starts to decode, and the
// namespace is pickled, copied and unpickled.
const (
	moveBase = 5 * time.Millisecond
	moveRate = 100 << 20 // bytes a second
)

// Plan decides about a snippet. It is a pure function: it looks at nothing but
// its arguments, changes none, and gives the same answer every time.
//
// The home is first if it can run the snippet, whatever it costs: a move is made
// only when it is needed. The other tiers follow by cost.
func (p Policy) Plan(v Verdict, candidates []Candidate, s State) Plan {
	if v.Needs == nil && v.Invalid == nil && v.Unknown == "" {
		v.Unknown = "the analyser gave no verdict"
	}
	plan := Plan{Language: s.Language, Home: s.Home, Needs: v.Needs, Unknown: v.Unknown}
	if v.Invalid != nil {
		plan.Invalid = oneLine(v.Invalid.Type + ": " + v.Invalid.Message)
	}
	plan.Chain = make([]Step, 0, len(candidates))
	q := question{policy: &p, verdict: &v, state: &s, invalid: plan.Invalid}
	for i := range candidates {
		c := &candidates[i]
		if reason := q.refusal(c); reason != "" {
			plan.Refusals = append(plan.Refusals, Refusal{c.Info.Name, reason})
		} else {
			plan.Chain = append(plan.Chain, s.step(&c.Info))
		}
	}
	plan.Refusals = append(plan.Refusals, p.absent(candidates)...)
	slices.SortStableFunc(plan.Chain, earlier)
	slices.SortStableFunc(plan.Refusals, func(a, b Refusal) int { return byName(a.Tier, b.Tier) })
	return plan
}

// absent refuses the tiers that the policy names and that do not exist.
func (p Policy) absent(candidates []Candidate) []Refusal {
	var refusals []Refusal
	for _, name := range p.named() {
		if !slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Info.Name == name }) {
			refusals = append(refusals, Refusal{name, "there is no such tier"})
		}
	}
	return refusals
}

// step is what it takes to run a snippet in a tier.
func (s *State) step(info *tiers.Info) Step {
	step := Step{Tier: info.Name, Run: info.Cost.Snippet}
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

// earlier orders a chain.
func earlier(a, b Step) int {
	switch {
	case a.Home != b.Home && a.Home:
		return -1
	case a.Home != b.Home:
		return 1
	}
	return cmp.Or(cmp.Compare(a.Cost(), b.Cost()), byName(a.Tier, b.Tier))
}

// byName orders tiers that cost the same: the light ones first, local last of
// those we know, because it is the weakest.
func byName(a, b string) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

var order = [...]string{"interp", "wasm", "docker", OnRequest}

func rank(tier string) int {
	if i := slices.Index(order[:], tier); i >= 0 {
		return i
	}
	return len(order)
}
