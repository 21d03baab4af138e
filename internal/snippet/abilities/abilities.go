// Package abilities derives the abilities of a tier from its description.
package abilities

import (
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// RunsWholeLanguage reports whether a tier runs its whole language. A tier that runs code generated
// at run time cannot restrict what it runs.
func RunsWholeLanguage(info *tiers.Info) bool { return info.Has(tiers.FeatureDynamic) }

// LacksModule reports whether a tier is known to lack the module of a dotted name. Without a list
// of modules, no module is known to be missing. Tiers check the packages of Go snippets themselves
// before running them.
func LacksModule(info *tiers.Info, language tiers.Language, module string) bool {
	if language != tiers.Python || info.Modules == nil {
		return false
	}
	top, _, _ := strings.Cut(module, ".")
	return !info.Modules[top]
}
