package router

import (
	"fmt"

	"github.com/rlmhq/rlm/internal/snippet/abilities"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/tiers"
)

// maxReason is the number of bytes of a tier's own reason that are shown. Reasons end with advice,
// which should fit.
const maxReason = 1000

// question holds the facts that decide whether a tier may run a snippet.
type question struct {
	policy  *Policy
	verdict *Verdict
	state   *Standing
	invalid string // the verdict's exception on one line
}

// answer is the answer to a question for one tier.
type answer struct {
	refusal string   // why the tier must not run the snippet, or "" if it may
	lacks   []string // modules that the snippet imports and the tier lacks, as in [Step]
}

// ask answers the question for all tiers. Among tiers that may run the snippet, it refuses all
// but those that lack the fewest modules.
func (q *question) ask(candidates []Candidate) []answer {
	answers := make([]answer, len(candidates))
	fewest := -1
	for i := range candidates {
		a := &answers[i]
		if a.refusal = q.refuse(&candidates[i]); a.refusal != "" {
			continue
		}
		a.lacks = q.lackedModules(&candidates[i].Info)
		if fewest < 0 || len(a.lacks) < fewest {
			fewest = len(a.lacks)
		}
	}

	for i := range answers {
		if a := &answers[i]; a.refusal == "" && len(a.lacks) > fewest {
			a.refusal = "lacks the module " + a.lacks[0]
		}
	}
	return answers
}

// refuse returns the reason why a tier must not run the snippet, or "" if it may. It checks the
// policy first, then the tier's features, then the state of this machine.
func (q *question) refuse(c *Candidate) string {
	for _, check := range [...]func(*question, *Candidate) string{
		(*question).checkPolicy,
		(*question).checkLanguage,
		(*question).checkNeeds,
		(*question).checkRejections,
		(*question).checkReach,
	} {
		if reason := check(q, c); reason != "" {
			return reason
		}
	}
	return ""
}

func (q *question) checkPolicy(c *Candidate) string {
	info, p := &c.Info, q.policy
	if reason := p.refuseTier(info); reason != "" {
		if p.lacksRequest(info) && c.Unusable != nil {
			reason += "; this machine needs more: " + unusable(c)
		}
		return reason
	}
	if info.Isolation < p.MinIsolation {
		return fmt.Sprintf("isolation %s is weaker than the policy's minimum %s",
			info.Isolation, p.MinIsolation)
	}

	for _, f := range [...]tiers.Feature{tiers.FeatureSockets, tiers.FeatureFiles} {
		if p.wishesFor(f) && !info.Has(f) {
			return fmt.Sprintf("lacks %s, which the policy requires", f)
		}
	}

	for _, f := range q.state.Wants {
		if !info.Has(f) {
			return fmt.Sprintf("lacks %s, which the session requires", f)
		}
	}

	return ""
}

func (q *question) checkLanguage(c *Candidate) string {
	for _, language := range c.Info.Languages {
		if language == q.state.Language {
			return ""
		}
	}

	reason := "does not run the language " + texts.OneLine(string(q.state.Language))
	if why := c.Info.Lacks[q.state.Language]; why != "" {
		reason += " on this machine: " + texts.OneLine(why)
	}
	return reason
}

// checkNeeds compares the snippet's needs with the tier's features.
func (q *question) checkNeeds(c *Candidate) string {
	info, v := &c.Info, q.verdict
	switch {
	case v.Invalid != nil:
		// The home responds with its own traceback, which contains the snippet's number. No other
		// tier is tried.
		if info.Name == q.state.Home {
			return ""
		}
		return fmt.Sprintf("the snippet is not %s: %s", q.state.Language, q.invalid)
	case v.Needs == nil:
		return q.checkUnknown(info)
	}

	if reason := q.checkModules(info, v.Needs.Imports); reason != "" {
		return reason
	}

	for i := range v.Needs.Features {
		need := &v.Needs.Features[i]
		switch {
		case !info.Has(need.Feature):
			return fmt.Sprintf("the snippet needs %s (%s, %s)",
				need.Feature, texts.OneLine(need.Why), need.where())
		case need.Feature == tiers.FeatureSockets && len(q.policy.Hosts) == 0:
			return fmt.Sprintf("the snippet needs %s (%s, %s), "+
				"and the policy lists no host to reach: name it with --allow-host HOST:PORT",
				need.Feature, texts.OneLine(need.Why), need.where())
		}
	}

	return ""
}

// checkUnknown refuses a snippet that the analyser did not understand in tiers with only part of
// the language, and in all tiers if modules must be checked.
func (q *question) checkUnknown(info *tiers.Info) string {
	why := texts.OneLine(q.verdict.Unknown)
	switch {
	case !abilities.RunsWholeLanguage(info):
		return fmt.Sprintf("the analyser did not understand the snippet (%s), "+
			"and this tier does not run the whole language", why)
	case len(q.policy.Modules) > 0:
		return fmt.Sprintf("the analyser did not understand the snippet (%s), "+
			"so the policy's modules cannot be checked",
			why)
	}
	return ""
}

// checkModules refuses modules that the policy does not allow, and missing modules in a tier with
// only part of the language, because the exceptions of such a tier differ from the language's.
func (q *question) checkModules(info *tiers.Info, imports []Import) string {
	for i := range imports {
		module := &imports[i]
		if !q.policy.admitsModule(q.state.Language, module.Module) {
			return "policy does not allow the module " + module.describe()
		}
	}

	if abilities.RunsWholeLanguage(info) {
		return ""
	}
	if lacked := q.lackedModules(info); len(lacked) > 0 {
		return "lacks the module " + lacked[0]
	}
	return ""
}

// lackedModules lists the modules that a tier lacks, without duplicates, with the place of the
// import. It omits guarded imports, without which the snippet can run.
func (q *question) lackedModules(info *tiers.Info) (lacked []string) {
	if q.verdict.Needs == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range q.verdict.Needs.Imports {
		module := &q.verdict.Needs.Imports[i]
		optional := module.Guarded || module.Unlikely
		if optional || seen[module.Module] || !abilities.LacksModule(info, q.state.Language, module.Module) {
			continue
		}
		seen[module.Module] = true
		lacked = append(lacked, module.describe())
	}
	return lacked
}

// checkRejections refuses tiers that already rejected the snippet, and those that lack the module
// or feature that another tier found missing.
func (q *question) checkRejections(c *Candidate) string {
	rejected := q.state.Rejected
	for i := range rejected {
		if r := &rejected[i]; r.Tier == c.Info.Name {
			return "rejected the snippet: " + texts.OneLine(r.Reason)
		}
	}

	for i := range rejected {
		if r := &rejected[i]; lacksMissing(&c.Info, q.state.Language, r.Missing) {
			return fmt.Sprintf("lacks %s, which tier %s reported missing", texts.OneLine(r.Missing), r.Tier)
		}
	}
	return ""
}

// checkReach refuses tiers that are unusable here, and those that the session's variables
// cannot reach.
func (q *question) checkReach(c *Candidate) string {
	s := q.state
	switch {
	case c.Unusable != nil:
		return "not usable on this machine: " + unusable(c)
	case s.Home == "" || s.Home == c.Info.Name:
		return ""
	case s.Fixed:
		return "the session's variables cannot leave tier " + s.Home
	case !c.Info.Has(tiers.FeatureMove):
		return "the session's variables cannot move to this tier"
	}
	return ""
}

// unusable returns a tier's own reason why it cannot work on this machine.
func unusable(c *Candidate) string { return texts.Line(c.Unusable.Error(), maxReason) }

// lacksMissing reports whether a tier is known to lack the module or feature that another tier
// found missing.
func lacksMissing(info *tiers.Info, language tiers.Language, missing string) bool {
	switch f := tiers.Feature(missing); f {
	case "", tiers.Feature(tiers.Python), tiers.Feature(tiers.Go):
		return false
	case tiers.FeatureAsync, tiers.FeatureThreads, tiers.FeatureProcesses, tiers.FeatureSockets,
		tiers.FeatureFiles, tiers.FeatureOut, tiers.FeatureNative, tiers.FeatureDynamic,
		tiers.FeatureClasses, tiers.FeatureGenerators:
		return !info.Has(f)
	default:
		return abilities.LacksModule(info, language, missing)
	}
}
