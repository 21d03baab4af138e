package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/snippet/abilities"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// explainMissing adds to a ModuleNotFoundError the other tiers that have the module, with the
// reasons why the snippet did not run there.
func (e *escalation) explainMissing(ctx context.Context) {
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

	advice := e.adviseOn(ctx, module)
	noted := *x
	noted.Traceback = strings.TrimRight(x.Traceback, "\n") + "\n" + advice
	e.result.Exception = &noted
}

// adviseOn describes where to find a module that the snippet's tier lacks, one tier per line, and
// how to add it if no tier is known to have it.
func (e *escalation) adviseOn(ctx context.Context, module string) string {
	module, _, _ = strings.Cut(texts.OneLine(module), ".")
	plan := e.planAgain(ctx)
	var b strings.Builder
	isKnown := false
	for i := range e.candidates {
		info := &e.candidates[i].Info
		reason := reasonAgainst(plan, info.Name)
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
	case isKnown && isPure(module):
		fmt.Fprintf(&b, "add its pure-Python package with --with %s\n", packageOf(module))
	case isKnown:
	case slices.Contains(absentStandard, module):
		fmt.Fprintf(&b, "no sandbox has the module %s of the standard library\n", module)
	default:
		fmt.Fprintf(&b, "no tier is known to have the module %s: %s\n", module, e.adviseOnPackage(module))
	}
	return b.String()
}

// adviseOnPackage explains how to add a package that no tier is known to have.
func (e *escalation) adviseOnPackage(module string) string {
	name := packageOf(module)
	image := fmt.Sprintf("build an image with rlm images build --name %s --with %s and pass --image %s",
		name, name, name)
	if why := e.whyNoImages(); why != "" {
		image = fmt.Sprintf("an image can have it, but tier docker is refused: %s", why)
	}
	if slices.Contains(compiledPackages, name) {
		return "its package needs compiled code, which --with cannot add; " + image
	}
	return fmt.Sprintf("add a pure-Python package with --with %s; for any other, %s", name, image)
}

// whyNoImages returns the reason why the tier whose packages are in images does not run on this
// machine, or an empty string.
func (e *escalation) whyNoImages() string {
	for i := range e.candidates {
		c := &e.candidates[i]
		switch {
		case c.Info.Isolation != tiers.IsolationContainer:
		case c.Unusable != nil:
			return texts.Line(c.Unusable.Error(), maxReason)
		default:
			return reasonAgainst(e.planNothing(), c.Info.Name)
		}
	}
	return "there is none"
}

// planAgain plans the snippet again after probing the tiers that the advice could name. It does not
// probe tiers that the policy excludes, because the result would change nothing, and the wait for
// it would delay each snippet with a missing module.
func (e *escalation) planAgain(ctx context.Context) *router.Plan {
	allowed := e.planNothing()
	isAdvised := func(info *tiers.Info) bool {
		return info.Isolation == tiers.IsolationContainer && reasonAgainst(allowed, info.Name) == ""
	}
	for i := e.findUnprobedWhere(isAdvised); i >= 0; i = e.findUnprobedWhere(isAdvised) {
		if e.probe(ctx, i) != nil {
			return e.result.Plan
		}
	}

	plan := e.cfg.Policy.Plan(e.verdict, e.candidates, e.standing)
	return &plan
}

// planNothing plans a snippet without needs. It refuses the tiers that the policy excludes, and
// those that are known to be unusable.
func (e *escalation) planNothing() *router.Plan {
	plan := e.cfg.Policy.Plan(router.Verdict{Needs: &router.Needs{}}, e.candidates,
		router.Standing{Language: e.job.Language})
	return &plan
}

// maxReason is the number of bytes of a tier's own reason that are shown, as in a plan.
const maxReason = 1000

// isPure reports whether a module that a tier has is probably from a package without compiled code.
func isPure(module string) bool {
	return !slices.Contains(compiledPackages, packageOf(module)) &&
		!slices.Contains(absentStandard, module) && !slices.Contains(hostedStandard, module) &&
		!strings.HasPrefix(module, "_")
}

// compiledPackages lists popular packages that contain compiled code or depend on packages that do.
var compiledPackages = []string{
	"cryptography", "duckdb", "grpcio", "jax", "keras", "lightgbm", "lxml", "matplotlib", "numba",
	"numpy", "opencv-python-headless", "pandas", "pillow", "polars", "psycopg2", "pyarrow",
	"pydantic", "pymupdf", "scikit-image", "scikit-learn", "scipy", "seaborn", "shapely", "spacy",
	"statsmodels", "tensorflow", "torch", "torchvision", "transformers", "xgboost",
}

// absentStandard lists modules of the standard library that need a screen, another system, or a
// program that no sandbox has. A package with the name of such a module would be a different one.
var absentStandard = []string{
	"_winapi", "ensurepip", "idlelib", "msvcrt", "nt", "tkinter", "turtle", "turtledemo", "venv",
	"winreg", "winsound",
}

// hostedStandard lists modules of the standard library that a tier may lack, but that CPython on a
// complete system has.
var hostedStandard = []string{
	"antigravity", "bz2", "cProfile", "compileall", "ctypes", "curses", "dbm", "fcntl", "ftplib",
	"getpass", "grp", "imaplib", "lzma", "mailbox", "mmap", "modulefinder", "multiprocessing", "netrc",
	"nturl2path", "pickletools", "poplib", "profile", "pstats", "pty", "pwd", "py_compile", "pyclbr",
	"pydoc", "pydoc_data", "readline", "resource", "smtplib", "sqlite3", "ssl", "syslog", "termios",
	"this", "trace", "tty", "webbrowser", "wsgiref", "xmlrpc", "zipapp",
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

// reasonAgainst returns the reason why a tier was refused, or an empty string if it was not.
func reasonAgainst(plan *router.Plan, tier string) string {
	for _, r := range plan.Refusals {
		if r.Tier == tier {
			return r.Reason
		}
	}
	return ""
}
