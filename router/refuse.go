package router

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rlmhq/rlm/tiers"
)

// question is whether a tier may run a snippet.
type question struct {
	policy  *Policy
	verdict *Verdict
	state   *State
	invalid string // the verdict's exception in one line
}

// refusal returns why a tier may not run the snippet, empty if it may. What the
// policy says comes first, then what the tier lacks, then what is true only here
// and now.
func (q *question) refusal(c *Candidate) string {
	for _, ask := range [...]func(*question, *Candidate) string{
		(*question).byPolicy, (*question).byLanguage, (*question).byNeeds, (*question).byState,
	} {
		if reason := ask(q, c); reason != "" {
			return reason
		}
	}
	return ""
}

func (q *question) byPolicy(c *Candidate) string {
	info, p := &c.Info, q.policy
	switch {
	case !p.admits(info.Name):
		return "policy does not allow it"
	case info.Isolation < p.MinIsolation:
		return fmt.Sprintf("isolation %s is weaker than the policy's minimum %s", info.Isolation, p.MinIsolation)
	}
	for _, f := range [...]tiers.Feature{tiers.FeatureSockets, tiers.FeatureFiles} {
		if p.wishes(f) && !info.Has(f) {
			return fmt.Sprintf("lacks %s, which the policy wishes", f)
		}
	}
	for _, f := range q.state.Wants {
		if !info.Has(f) {
			return fmt.Sprintf("lacks %s, which the session asks for", f)
		}
	}
	return ""
}

func (q *question) byLanguage(c *Candidate) string {
	for _, language := range c.Info.Languages {
		if language == q.state.Language {
			return ""
		}
	}
	reason := "does not run the language " + oneLine(string(q.state.Language))
	if why := c.Info.Lacks[q.state.Language]; why != "" {
		reason += " here: " + oneLine(why)
	}
	return reason
}

// byNeeds compares what the snippet needs with what the tier has.
func (q *question) byNeeds(c *Candidate) string {
	info, v := &c.Info, q.verdict
	switch {
	case v.Invalid != nil:
		// The home answers with its own traceback, in which the snippet has its
		// number. No other tier is troubled.
		if info.Name == q.state.Home {
			return ""
		}
		return fmt.Sprintf("the snippet is not %s: %s", q.state.Language, q.invalid)
	case v.Needs == nil:
		return q.unknown(info)
	}
	if reason := q.byModules(info, v.Needs.Imports); reason != "" {
		return reason
	}
	for i := range v.Needs.Features {
		need := &v.Needs.Features[i]
		switch {
		case !info.Has(need.Feature):
			return fmt.Sprintf("needs %s (%s, line %d)", need.Feature, oneLine(need.Why), need.Line)
		case need.Feature == tiers.FeatureSockets && len(q.policy.Hosts) == 0:
			return fmt.Sprintf("needs %s (%s, line %d), and the policy lists no host to reach", need.Feature, oneLine(need.Why), need.Line)
		}
	}
	return ""
}

// unknown refuses what was not understood to a tier that runs a part of the
// language only, and to all where modules have to be checked.
func (q *question) unknown(info *tiers.Info) string {
	switch {
	case !wholeLanguage(info):
		return fmt.Sprintf("not understood (%s), and it does not run the whole language", oneLine(q.verdict.Unknown))
	case len(q.policy.Modules) > 0:
		return fmt.Sprintf("not understood (%s), so that the policy's modules cannot be checked", oneLine(q.verdict.Unknown))
	}
	return ""
}

// byModules refuses what the policy does not let in, and what the tier has not.
// A guarded import is no need: the snippet can do without.
func (q *question) byModules(info *tiers.Info, imports []Import) string {
	for i := range imports {
		module := &imports[i]
		if !q.policy.imports(q.state.Language, module.Module) {
			return fmt.Sprintf("policy does not allow the module %s (line %d)", oneLine(module.Module), module.Line)
		}
		if !module.Guarded && lacksModule(info, q.state.Language, module.Module) {
			return fmt.Sprintf("lacks the module %s (line %d)", oneLine(module.Module), module.Line)
		}
	}
	return ""
}

// byState refuses tiers that rejected the snippet already, those that lack what
// another found missing, and those that are out of reach.
func (q *question) byState(c *Candidate) string {
	s := q.state
	for i := range s.Rejected {
		if r := &s.Rejected[i]; r.Tier == c.Info.Name {
			return "rejected it: " + oneLine(r.Reason)
		}
	}
	for i := range s.Rejected {
		if r := &s.Rejected[i]; lacks(&c.Info, s.Language, r.Missing) {
			return fmt.Sprintf("lacks %s, which tier %s found missing", oneLine(r.Missing), r.Tier)
		}
	}
	switch {
	case c.Unusable != nil:
		return "not usable here: " + oneLine(c.Unusable.Error())
	case s.Home == "" || s.Home == c.Info.Name:
		return ""
	case s.Fixed:
		return "the session's variables cannot leave tier " + s.Home
	case !c.Info.Has(tiers.FeatureMove):
		return "the session's variables cannot move there"
	}
	return ""
}

// wholeLanguage reports whether a tier runs all of its language. One that runs
// code which comes into being at run time cannot choose what it runs.
func wholeLanguage(info *tiers.Info) bool { return info.Has(tiers.FeatureDynamic) }

// lacksModule reports whether a tier is known to lack a Python module. No list
// means that nobody knows, and what a tier has of Go it says itself, before it
// runs anything.
func lacksModule(info *tiers.Info, language tiers.Language, module string) bool {
	return language == tiers.Python && info.Modules != nil && !info.Modules.Has(module)
}

// lacks reports whether a tier is known to lack what another found missing.
func lacks(info *tiers.Info, language tiers.Language, missing string) bool {
	switch f := tiers.Feature(missing); f {
	case "", tiers.Feature(tiers.Python), tiers.Feature(tiers.Go):
		return false
	case tiers.FeatureAsync, tiers.FeatureThreads, tiers.FeatureProcesses, tiers.FeatureSockets, tiers.FeatureFiles,
		tiers.FeatureNative, tiers.FeatureDynamic, tiers.FeatureClasses, tiers.FeatureGenerators:
		return !info.Has(f)
	default:
		return lacksModule(info, language, missing)
	}
}

// uncertain reports whether a tier may find out at run time that it cannot run
// the snippet.
func uncertain(info *tiers.Info, language tiers.Language, v *Verdict) bool {
	if v.Needs == nil || v.Needs.Has(tiers.FeatureDynamic) || !wholeLanguage(info) {
		return true
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

// longest is how much of a text that came from a snippet or a tier is shown.
const longest = 200

// oneLine makes a text fit for a table and a terminal: snippets are hostile.
func oneLine(text string) string {
	clean := func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ' {
			return ' '
		}
		return r
	}
	text = strings.TrimSpace(strings.Map(clean, text))
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
