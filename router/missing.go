package router

import (
	"cmp"
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

// adviseOn says where a module is that the snippet's tier lacks, one tier a line, and how to
// add it if no tier is known to have it.
func (e *escalation) adviseOn(module string) string {
	module, _, _ = strings.Cut(oneLine(module), ".")
	var b strings.Builder
	isKnown := false
	for i := range e.candidates {
		info := &e.candidates[i].info
		reason := e.result.Plan.reasonAgainst(info.Name)
		if reason == "" || !runsWholeLanguage(info) || lacksModule(info, tiers.Python, module) {
			continue
		}
		has := "may have"
		if info.Modules != nil {
			has, isKnown = "has", true
		}
		fmt.Fprintf(&b, "tier %s %s the module %s: %s\n", info.Name, has, module, reason)
	}

	if !isKnown {
		fmt.Fprintf(&b, "no tier is known to have the module %s: "+
			"if it is pure Python, add its package with --with %s\n", module, packageOf(module))
	}
	return b.String()
}

// packageNames are the packages of popular modules that have another name than their package.
var packageNames = map[string]string{
	"PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless",
	"dateutil": "python-dateutil", "docx": "python-docx", "dotenv": "python-dotenv",
	"fitz": "pymupdf", "pptx": "python-pptx", "skimage": "scikit-image",
	"sklearn": "scikit-learn", "yaml": "pyyaml",
}

// packageOf returns the package that probably has a module.
func packageOf(module string) string { return cmp.Or(packageNames[module], module) }

// reasonAgainst returns why a tier was refused, empty if it was not.
func (p *Plan) reasonAgainst(tier string) string {
	for _, r := range p.Refusals {
		if r.Tier == tier {
			return r.Reason
		}
	}
	return ""
}
