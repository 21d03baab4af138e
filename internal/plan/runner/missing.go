package runner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/snippet/abilities"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// explainMissing adds to a ModuleNotFoundError which other tiers have the module, and why the
// snippet did not run there.
func (e *escalation) explainMissing() {
	x := e.result.Exception
	if x == nil || x.Type != "ModuleNotFoundError" || e.job.Language != tiers.Python {
		return
	}
	_, rest, _ := strings.Cut(x.Message, "No module named '")
	module, _, found := strings.Cut(rest, "'")
	i, _ := e.findTier(e.result.Tier)
	if !found || !abilities.LacksModule(&e.candidates[i].Info, tiers.Python, module) {
		return
	}

	noted := *x
	noted.Traceback = strings.TrimRight(x.Traceback, "\n") + "\n" + e.adviseOn(module)
	e.result.Exception = &noted
}

// adviseOn describes where to find a module that the snippet's tier lacks, one tier per line, and
// how to add it if no tier is known to have it.
func (e *escalation) adviseOn(module string) string {
	module, _, _ = strings.Cut(texts.OneLine(module), ".")
	var b strings.Builder
	isKnown := false
	for i := range e.candidates {
		info := &e.candidates[i].Info
		reason := reasonAgainst(e.result.Plan, info.Name)
		if reason == "" || !abilities.RunsWholeLanguage(info) || abilities.LacksModule(info, tiers.Python, module) {
			continue
		}
		has := "may have"
		if info.Modules != nil {
			has, isKnown = "has", true
		}
		fmt.Fprintf(&b, "tier %s %s the module %s: %s\n", info.Name, has, module, reason)
	}

	switch {
	case isKnown:
	case slices.Contains(absentStandard, module):
		fmt.Fprintf(&b, "no sandbox has the module %s of the standard library\n", module)
	default:
		name := packageOf(module)
		fmt.Fprintf(&b, "no tier is known to have the module %s: add a pure-Python package with "+
			"--with %s, or build an image with rlm images build --with %s and pass --image %s\n",
			module, name, name, name)
	}
	return b.String()
}

// absentStandard are modules of the standard library that need a screen, another system, or a
// program that no sandbox has. A package of that name would not be the right one.
var absentStandard = []string{
	"_winapi", "ensurepip", "idlelib", "msvcrt", "nt", "tkinter", "turtle", "turtledemo", "venv",
	"winreg", "winsound",
}

// packageNames maps popular modules to the packages that contain them under another name.
var packageNames = map[string]string{
	"PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless",
	"dateutil": "python-dateutil", "docx": "python-docx", "dotenv": "python-dotenv",
	"fitz": "pymupdf", "pptx": "python-pptx", "skimage": "scikit-image",
	"sklearn": "scikit-learn", "yaml": "pyyaml",
}

// packageOf returns the package that probably contains a module.
func packageOf(module string) string { return cmp.Or(packageNames[module], module) }

// reasonAgainst returns why a tier was refused, or an empty string if it was not.
func reasonAgainst(plan *router.Plan, tier string) string {
	for _, r := range plan.Refusals {
		if r.Tier == tier {
			return r.Reason
		}
	}
	return ""
}
