// Package told provides the facts that servers report about their models.
package told

import (
	"cmp"

	"github.com/rlmhq/rlm/repl/llm"
)

// By returns the facts that a provider's server reported when the model was checked. A provider
// whose server may report facts has a method Facts(model string) llm.Facts.
func By(p llm.Provider, model string) llm.Facts {
	if teller, ok := p.(interface{ Facts(model string) llm.Facts }); ok {
		return teller.Facts(model)
	}
	return llm.Facts{}
}

// Or returns facts, with unknown ones taken from others.
func Or(facts, others llm.Facts) llm.Facts {
	return llm.Facts{
		Price:     cmp.Or(facts.Price, others.Price),
		Window:    cmp.Or(facts.Window, others.Window),
		MaxOutput: cmp.Or(facts.MaxOutput, others.MaxOutput),
		Unlisted:  facts.Unlisted || others.Unlisted,
		Local:     facts.Local || others.Local,
	}
}
