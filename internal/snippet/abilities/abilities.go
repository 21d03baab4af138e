// Package abilities reads from a tier's description what the tier can run.
package abilities

import (
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// RunsWholeLanguage reports whether a tier runs all of its language. A tier that runs code
// made at run time cannot choose what it runs.
func RunsWholeLanguage(info *tiers.Info) bool { return info.Has(tiers.FeatureDynamic) }

// LacksModule reports whether a tier is known to lack the module of a dotted name. Without a
// list, it is not known. Tiers check the packages of Go snippets themselves, before they run.
func LacksModule(info *tiers.Info, language tiers.Language, module string) bool {
	if language != tiers.Python || info.Modules == nil {
		return false
	}
	top, _, _ := strings.Cut(module, ".")
	return !info.Modules[top]
}
