package router

import (
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// explainMissing adds to a ModuleNotFoundError which other tier has the module, and why the
// snippet did not run there.
func (e *escalation) explainMissing() {
	x := e.result.Exception
	if x == nil || x.Type != "ModuleNotFoundError" || e.job.Language != tiers.Python {
		return
	}
	_, rest, _ := strings.Cut(x.Message, "No module named '")
	module, _, found := strings.Cut(rest, "'")
	i, _ := e.findTier(e.result.Tier)
	if !found || !lacksModule(&e.candidates[i].info, tiers.Python, module) {
		return
	}

	noted := *x
	noted.Traceback = strings.TrimRight(x.Traceback, "\n") + "\n" + e.adviseOn(module)
	e.result.Exception = &noted
}

// adviseOn says where a module is that the snippet's tier lacks, one tier a line.
func (e *escalation) adviseOn(module string) string {
	module, _, _ = strings.Cut(oneLine(module), ".")
	var b strings.Builder
	for i := range e.candidates {
		info := &e.candidates[i].info
		reason := e.result.Plan.reasonAgainst(info.Name)
		if reason == "" || !runsWholeLanguage(info) || lacksModule(info, tiers.Python, module) {
			continue
		}
		has := "has"
		if info.Modules == nil {
			has = "may have"
		}
		fmt.Fprintf(&b, "tier %s %s the module %s: %s\n", info.Name, has, module, reason)
	}

	if b.Len() == 0 {
		fmt.Fprintf(&b, "no tier has the module %s: install it for the Python of tier local\n", module)
	}
	return b.String()
}

// reasonAgainst returns why a tier was refused, empty if it was not.
func (p *Plan) reasonAgainst(tier string) string {
	for _, r := range p.Refusals {
		if r.Tier == tier {
			return r.Reason
		}
	}
	return ""
}
