package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
)

// Warnings returns sentences about models that might not meet the expectations of a run, or whose
// window or price is unknown or assumed. It ignores names that cannot be resolved and empty ones.
func Warnings(models Models, names ...string) (warnings []string) {
	for _, w := range []struct {
		text string
		fits func(llm.Facts) bool
	}{
		{
			"the server does not list %s; the run uses it anyway",
			func(f llm.Facts) bool { return f.Unlisted },
		},
		{
			"the window of %s is unknown, so only the server limits prompts; " +
				"give it with --window",
			func(f llm.Facts) bool { return f.Window == 0 },
		},
		{
			"the price of %s is unknown, so its calls do not count in US dollars; " +
				"give it with --price",
			func(f llm.Facts) bool { return f.Price == nil },
		},
		{
			"calls of %s cost nothing, because the server is your own; " +
				"give another price with --price",
			func(f llm.Facts) bool { return f.Local },
		},
	} {
		if having := namesHaving(models, names, w.fits); len(having) > 0 {
			warnings = append(warnings, fmt.Sprintf(w.text, strings.Join(having, " and ")))
		}
	}
	return warnings
}

// namesHaving returns the names of the models whose facts satisfy fits, each once.
func namesHaving(models Models, names []string, fits func(llm.Facts) bool) (having []string) {
	for _, name := range names {
		if name == "" || slices.Contains(having, name) {
			continue
		}
		if m, err := models.Resolve(name); err == nil && fits(m.Facts) {
			having = append(having, name)
		}
	}
	return having
}
