package router

import (
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/tiers"
)

// Candidate describes a tier to the planner.
type Candidate struct {
	Info tiers.Info
	// Unusable is the reason why the tier does not work on this machine, or nil if it works.
	Unusable error
}

// Standing is the state of the session's namespace of one language before a snippet. The zero
// value is the start of a session without limits.
type Standing struct {
	// Language of the snippet.
	Language tiers.Language
	// Home is the tier in which the namespace lives, or empty if no snippet has run. Fixed reports
	// that the namespace cannot leave its home, and Settled that it does not leave for a faster
	// tier.
	Home           string
	Fixed, Settled bool
	// Restored reports that the namespace holds definitions from snippets of another session.
	Restored bool
	// Bytes is the maximum size of the namespace, and Ran the number of snippets that ran in it.
	Bytes int64
	Ran   int
	// Later are the needs of definitions from earlier snippets, by name: see [Needs].
	Later map[string]*Needs
	// Open are the tiers with a waiting sandbox that has not run a snippet yet.
	Open []string
	// Rejected are the errors of tiers that have already rejected this snippet.
	Rejected []tiers.RejectedError
	// Wants are the features that the session's configuration requires in addition to the
	// snippet's needs.
	Wants []tiers.Feature
	// MaxActive bounds the snippet's computing time; 0 means no bound.
	MaxActive time.Duration
}

// Plan is the decision about one snippet, and its reasons.
type Plan struct {
	// Language of the snippet.
	Language tiers.Language `json:"language"`
	// Home is the tier in which the namespace lives, or empty if there is none yet.
	Home string `json:"home,omitempty"`
	// Needs, Invalid and Unknown are the analyser's verdict. Invalid is the exception that the
	// language raises for the snippet, on one line.
	Needs   *Needs `json:"needs,omitempty"`
	Invalid string `json:"invalid,omitempty"`
	Unknown string `json:"unknown,omitempty"`
	// Chain lists the tiers that may run the snippet, in the order in which to try them.
	Chain []Step `json:"chain"`
	// Refusals lists the tiers that must not run the snippet, with lighter tiers first.
	Refusals []Refusal `json:"refusals,omitempty"`

	// Exception is the full form of Invalid, with the snippet's number; nil if Invalid is empty.
	Exception *tiers.Exception `json:"-"`
	// ForSpeed reports that the first tier of the chain is first only because it computes
	// faster.
	ForSpeed bool `json:"-"`
	// Rejectable reports that the first tier may turn out to lack something that another tier has,
	// so it is worth running the snippet as a Rejectable [tiers.Job].
	Rejectable bool `json:"-"`
}

// Refusal is the reason why a tier must not run a snippet, or did not run it.
type Refusal struct {
	Tier string `json:"tier"`
	// Reason is one sentence for display.
	Reason string `json:"reason"`
	// Effects reports, for a tier that was tried, whether the snippet started there.
	Effects tiers.Effects `json:"effects,omitempty"`
}

// Err returns a [*NoTierError] if no tier may run the snippet. A snippet that is not valid in
// its language needs no tier.
func (p *Plan) Err() error {
	if len(p.Chain) > 0 || p.Invalid != "" {
		return nil
	}
	return &NoTierError{Refusals: p.Refusals, Effects: tiers.EffectsNeverRan}
}

// Plan decides which tier runs a snippet. It is a pure function: it depends only on its
// arguments, and changes none of them.
//
// The home comes first if it can run the snippet; the other tiers follow in order of cost. A
// snippet that computes for long is the exception: see [Step]. A missing module rules out a tier
// only if another tier lacks fewer, since only a run shows whether an import is reached.
func (p Policy) Plan(v Verdict, candidates []Candidate, s Standing) Plan {
	if v.Needs == nil && v.Invalid == nil && v.Unknown == "" {
		v.Unknown = "the analyser gave no verdict"
	}
	if v.Needs != nil && len(s.Later) > 0 {
		v.Needs = v.Needs.withLater(s.Later)
	}
	plan := Plan{Language: s.Language, Home: s.Home, Needs: v.Needs, Unknown: v.Unknown}
	if v.Invalid != nil {
		plan.Exception = numberSnippet(v.Invalid, s.Ran+1)
		plan.Invalid = texts.OneLine(plan.Exception.Type + ": " + plan.Exception.Message)
	}

	if !slices.IsSortedFunc(candidates, compareWeight) {
		candidates = slices.Clone(candidates)
		slices.SortFunc(candidates, compareWeight)
	}

	plan.Chain = make([]Step, 0, len(candidates))
	q := question{policy: &p, verdict: &v, state: &s, invalid: plan.Invalid}
	for i, a := range q.ask(candidates) {
		info := &candidates[i].Info
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
	plan.Rejectable = q.mayBeRejected(plan.Chain, candidates)
	return plan
}

// refuseAbsent returns refusals for the tiers that the policy names but that do not exist.
func (p Policy) refuseAbsent(candidates []Candidate) []Refusal {
	var refusals []Refusal
	for _, name := range p.namedTiers() {
		exists := slices.ContainsFunc(candidates, func(c Candidate) bool {
			return c.Info.Name == name
		})
		if !exists {
			refusals = append(refusals, Refusal{Tier: name, Reason: "unknown tier"})
		}
	}
	return refusals
}
