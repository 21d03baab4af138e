// Package told has what servers tell about their models.
package told

import (
	"cmp"

	"github.com/rlmhq/rlm/repl/llm"
)

// By returns what the server of a provider has told about a model, when the model was
// checked. The provider has a method Facts(model string) llm.Facts if its server may tell
// something.
func By(p llm.Provider, model string) llm.Facts {
	if teller, ok := p.(interface{ Facts(model string) llm.Facts }); ok {
		return teller.Facts(model)
	}
	return llm.Facts{}
}

// Or returns the facts, with those that are unknown taken from others.
func Or(facts, others llm.Facts) llm.Facts {
	return llm.Facts{
		Price:     cmp.Or(facts.Price, others.Price),
		Window:    cmp.Or(facts.Window, others.Window),
		MaxOutput: cmp.Or(facts.MaxOutput, others.MaxOutput),
		Unlisted:  facts.Unlisted || others.Unlisted,
	}
}
