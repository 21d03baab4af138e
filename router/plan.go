package router

import (
	"slices"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// candidate is a tier as the plan sees it.
type candidate struct {
	info     tiers.Info
	unusable error // why the tier is not usable on this machine, nil if it is
}

// standing is where the session's namespace of one language stands before a snippet.
type standing struct {
	language tiers.Language // of the snippet
	home     string         // the tier in which the namespace lives, empty if no snippet ran yet
	fixed    bool           // the namespace cannot leave its home
	settled  bool           // it does not leave its home for a faster tier: see passOver
	bytes    int64          // how large the namespace may be at most
	ran      int            // how many snippets ran in it
	// open are the tiers in which a sandbox waits that has run no snippet yet.
	open []string
	// rejected is what tiers said that rejected this very snippet.
	rejected []tiers.RejectedError
	// wants are the features that the session's configuration requires in addition to the
	// snippet's needs.
	wants []tiers.Feature
	// maxActive is how long the snippet may compute, 0 if that is not bounded.
	maxActive time.Duration
}

// Plan is the decision about one snippet, and its reasons.
type Plan struct {
	// Language of the snippet.
	Language tiers.Language `json:"language"`
	// Home is the tier in which the namespace lives, empty if there is none yet.
	Home string `json:"home,omitempty"`
	// Needs, Invalid and Unknown are the analyser's verdict. Invalid is the exception
	// that the snippet's language has for it, in one line.
	Needs   *Needs `json:"needs,omitempty"`
	Invalid string `json:"invalid,omitempty"`
	Unknown string `json:"unknown,omitempty"`
	// Chain are the tiers that may run the snippet, in the order to try them.
	Chain []Step `json:"chain"`
	// Refusals are the tiers that may not, the light ones first.
	Refusals []Refusal `json:"refusals,omitempty"`

	// forSpeed says that the first tier of the chain is first only because it computes
	// faster.
	forSpeed bool
}

// Refusal is the reason why a tier may not run a snippet, or did not.
type Refusal struct {
	Tier string `json:"tier"`
	// Reason is one sentence for people.
	Reason string `json:"reason"`
	// Effects says of a tier that was tried whether the snippet had begun there.
	Effects tiers.Effects `json:"effects,omitempty"`
}

// Err returns a [*NoTierError] if no tier may run the snippet. A snippet that is not of
// its language needs none.
func (p *Plan) Err() error {
	if len(p.Chain) > 0 || p.Invalid != "" {
		return nil
	}
	return &NoTierError{Refusals: p.Refusals, Effects: tiers.EffectsNeverRan}
}

// plan decides about a snippet. It is a pure function: it looks at nothing but its
// arguments, changes none, and gives the same answer every time.
//
// The home comes first if it can run the snippet; the other tiers follow by cost. A
// snippet that computes for long is the exception: see [Step]. A missing module refuses a
// tier only if another tier lacks fewer: whether an import is reached, a run decides.
func (p Policy) plan(v Verdict, candidates []candidate, s standing) Plan {
	if v.Needs == nil && v.Invalid == nil && v.Unknown == "" {
		v.Unknown = "the analyser gave no verdict"
	}
	plan := Plan{Language: s.language, Home: s.home, Needs: v.Needs, Unknown: v.Unknown}
	if v.Invalid != nil {
		x := numberSnippet(v.Invalid, s.ran+1)
		plan.Invalid = oneLine(x.Type + ": " + x.Message)
	}

	if !slices.IsSortedFunc(candidates, compareWeight) {
		candidates = slices.Clone(candidates)
		slices.SortFunc(candidates, compareWeight)
	}

	plan.Chain = make([]Step, 0, len(candidates))
	q := question{policy: &p, verdict: &v, state: &s, invalid: plan.Invalid}
	for i, a := range q.ask(candidates) {
		info := &candidates[i].info
		if a.refusal != "" {
			plan.Refusals = append(plan.Refusals, Refusal{Tier: info.Name, Reason: a.refusal})
			continue
		}
		step := s.stepTo(info, v.Needs)
		step.Lacks = a.lacks
		plan.Chain = append(plan.Chain, step)
	}

	plan.Refusals = append(plan.Refusals, p.refuseAbsent(candidates)...)

	plan.orderChain(&s)
	return plan
}

// refuseAbsent refuses the tiers that the policy names and that do not exist.
func (p Policy) refuseAbsent(candidates []candidate) []Refusal {
	var refusals []Refusal
	for _, name := range p.namedTiers() {
		exists := slices.ContainsFunc(candidates, func(c candidate) bool {
			return c.info.Name == name
		})
		if !exists {
			refusals = append(refusals, Refusal{Tier: name, Reason: "unknown tier"})
		}
	}
	return refusals
}
