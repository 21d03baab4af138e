package router

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/rlmhq/rlm/tiers"
)

// question is whether a tier may run a snippet.
type question struct {
	policy  *Policy
	verdict *Verdict
	state   *standing
	invalid string // the verdict's exception in one line
}

// answer is what a question comes to for one tier.
type answer struct {
	refusal string   // why it may not run the snippet, empty if it may
	lacks   []string // modules that the snippet imports, as [Step] has them
}

// ask asks about all tiers. Of those that may run the snippet it refuses all but the ones that
// lack the fewest modules.
func (q *question) ask(candidates []candidate) []answer {
	answers := make([]answer, len(candidates))
	fewest := -1
	for i := range candidates {
		a := &answers[i]
		if a.refusal = q.refuse(&candidates[i]); a.refusal != "" {
			continue
		}
		a.lacks = q.lackedModules(&candidates[i].info)
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

// refuse returns why a tier may not run the snippet, empty if it may. It checks the policy first,
// then the tier's abilities, then the state of this machine.
func (q *question) refuse(c *candidate) string {
	for _, check := range [...]func(*question, *candidate) string{
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

func (q *question) checkPolicy(c *candidate) string {
	info, p := &c.info, q.policy
	if reason := p.refuseTier(info); reason != "" {
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

	for _, f := range q.state.wants {
		if !info.Has(f) {
			return fmt.Sprintf("lacks %s, which the session requires", f)
		}
	}

	return ""
}

func (q *question) checkLanguage(c *candidate) string {
	for _, language := range c.info.Languages {
		if language == q.state.language {
			return ""
		}
	}

	reason := "does not run the language " + oneLine(string(q.state.language))
	if why := c.info.Lacks[q.state.language]; why != "" {
		reason += " on this machine: " + oneLine(why)
	}
	return reason
}

// checkNeeds compares what the snippet needs with what the tier has.
func (q *question) checkNeeds(c *candidate) string {
	info, v := &c.info, q.verdict
	switch {
	case v.Invalid != nil:
		// The home answers with its own traceback, in which the snippet has its number.
		// No other tier is tried.
		if info.Name == q.state.home {
			return ""
		}
		return fmt.Sprintf("the snippet is not %s: %s", q.state.language, q.invalid)
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
				need.Feature, oneLine(need.Why), need.where())
		case need.Feature == tiers.FeatureSockets && len(q.policy.Hosts) == 0:
			return fmt.Sprintf("the snippet needs %s (%s, %s), "+
				"and the policy lists no host to reach",
				need.Feature, oneLine(need.Why), need.where())
		}
	}

	return ""
}

// checkUnknown refuses a snippet that the analyser did not understand to a tier that runs
// a part of the language only, and to all tiers where modules have to be checked.
func (q *question) checkUnknown(info *tiers.Info) string {
	why := oneLine(q.verdict.Unknown)
	switch {
	case !runsWholeLanguage(info):
		return fmt.Sprintf("the analyser did not understand the snippet (%s), "+
			"and this tier does not run the whole language", why)
	case len(q.policy.Modules) > 0:
		return fmt.Sprintf("the analyser did not understand the snippet (%s), "+
			"so the policy's modules cannot be checked",
			why)
	}
	return ""
}

// checkModules refuses what the policy does not allow, and what a tier does not have that
// runs only a part of the language: its exceptions are not those of the language.
func (q *question) checkModules(info *tiers.Info, imports []Import) string {
	for i := range imports {
		module := &imports[i]
		if !q.policy.admitsModule(q.state.language, module.Module) {
			return "policy does not allow the module " + module.describe()
		}
	}

	if runsWholeLanguage(info) {
		return ""
	}
	if lacked := q.lackedModules(info); len(lacked) > 0 {
		return "lacks the module " + lacked[0]
	}
	return ""
}

// lackedModules lists the modules that a tier lacks, each once, with the place of the import.
// The snippet can do without a guarded import.
func (q *question) lackedModules(info *tiers.Info) (lacked []string) {
	if q.verdict.Needs == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range q.verdict.Needs.Imports {
		module := &q.verdict.Needs.Imports[i]
		optional := module.Guarded || module.Unlikely
		if optional || seen[module.Module] || !lacksModule(info, q.state.language, module.Module) {
			continue
		}
		seen[module.Module] = true
		lacked = append(lacked, module.describe())
	}
	return lacked
}

// checkRejections refuses tiers that rejected the snippet already, and those that lack
// what another tier found missing.
func (q *question) checkRejections(c *candidate) string {
	rejected := q.state.rejected
	for i := range rejected {
		if r := &rejected[i]; r.Tier == c.info.Name {
			return "rejected the snippet: " + oneLine(r.Reason)
		}
	}

	for i := range rejected {
		if r := &rejected[i]; lacksMissing(&c.info, q.state.language, r.Missing) {
			return fmt.Sprintf("lacks %s, which tier %s reported missing", oneLine(r.Missing), r.Tier)
		}
	}
	return ""
}

// checkReach refuses tiers that are unusable here, and those that the session's variables
// cannot reach.
func (q *question) checkReach(c *candidate) string {
	s := q.state
	switch {
	case c.unusable != nil:
		return "not usable on this machine: " + cleanLine(c.unusable.Error(), maxReason)
	case s.home == "" || s.home == c.info.Name:
		return ""
	case s.fixed:
		return "the session's variables cannot leave tier " + s.home
	case !c.info.Has(tiers.FeatureMove):
		return "the session's variables cannot move to this tier"
	}
	return ""
}

// runsWholeLanguage reports whether a tier runs all of its language. A tier that runs code
// made at run time cannot choose what it runs.
func runsWholeLanguage(info *tiers.Info) bool { return info.Has(tiers.FeatureDynamic) }

// lacksModule reports whether a tier is known to lack a Python module. Without a list, it is not
// known. Tiers check the packages of Go snippets themselves, before they run.
func lacksModule(info *tiers.Info, language tiers.Language, module string) bool {
	return language == tiers.Python && info.Modules != nil && !hasModule(info, module)
}

// hasModule reports whether a tier has the top-level package of a dotted name.
func hasModule(info *tiers.Info, module string) bool {
	top, _, _ := strings.Cut(module, ".")
	return info.Modules[top]
}

// lacksMissing reports whether a tier is known to lack what another found missing.
func lacksMissing(info *tiers.Info, language tiers.Language, missing string) bool {
	switch f := tiers.Feature(missing); f {
	case "", tiers.Feature(tiers.Python), tiers.Feature(tiers.Go):
		return false
	case tiers.FeatureAsync, tiers.FeatureThreads, tiers.FeatureProcesses, tiers.FeatureSockets,
		tiers.FeatureFiles, tiers.FeatureOut, tiers.FeatureNative, tiers.FeatureDynamic,
		tiers.FeatureClasses, tiers.FeatureGenerators:
		return !info.Has(f)
	default:
		return lacksModule(info, language, missing)
	}
}

// missesModule reports whether a snippet may import a module that the first of the tiers
// lacks and another of them may have.
func missesModule(chain []*tiers.Info, language tiers.Language, v *Verdict) bool {
	if v.Needs == nil {
		return false
	}
	for i := range v.Needs.Imports {
		module := &v.Needs.Imports[i]
		hasIt := func(info *tiers.Info) bool { return !lacksModule(info, language, module.Module) }
		if !module.Guarded && !hasIt(chain[0]) && slices.ContainsFunc(chain[1:], hasIt) {
			return true
		}
	}
	return false
}

// mayReject reports whether a tier may find out at run time that it cannot run the
// snippet.
func mayReject(info *tiers.Info, language tiers.Language, v *Verdict) bool {
	if v.Needs == nil || v.Needs.needsFeature(tiers.FeatureDynamic) || !runsWholeLanguage(info) {
		return true
	}
	if v.Needs.needsFeature(tiers.FeatureOut) && !info.Has(tiers.FeatureFiles) {
		return true // it may write elsewhere, too
	}
	if language != tiers.Python || info.Modules != nil {
		return false
	}

	for i := range v.Needs.Imports {
		if !v.Needs.Imports[i].Guarded {
			return true
		}
	}
	return false
}

const (
	// maxLine is how many bytes of a text that came from a snippet are shown.
	maxLine = 200
	// maxReason is how many bytes of a tier's own reason are shown: it ends with advice.
	maxReason = 1000
)

// oneLine makes a short text fit for a table and a terminal: snippets are hostile.
func oneLine(text string) string { return cleanLine(text, maxLine) }

// cleanLine makes a text of at most so many bytes fit for a table and a terminal.
func cleanLine(text string, most int) string {
	clean := func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ' {
			return ' '
		}
		return r
	}
	text = strings.TrimSpace(strings.Map(clean, text))
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
