package providers

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/spelling"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// lister is the advice for a name that cannot be used.
const lister = "; rlm models lists the models that are available here"

// split splits the full name of a model into the provider and its own name for the model. The
// error explains how to write the name.
func (r *Registry) split(name string) (provider, id string, err error) {
	provider, id, found := strings.Cut(name, "/")
	var mistake string

	switch {
	case !found && r.openers[r.fallback] != nil:
		provider, id, mistake = r.fallback, name, r.explainBare(name)
	case !found:
		mistake = r.explainUnknown(r.fallback, name)
	case r.openers[provider] == nil:
		mistake = r.explainUnknown(provider, id)
	case id == "":
		mistake = explainProvider(provider)
	}

	if mistake != "" {
		return "", "", &llm.Error{Kind: kind.ErrUnknownName, Model: name, Message: mistake}
	}
	return provider, id, nil
}

// explainBare explains the mistake in a name without a provider. It returns "" for a name that the
// default provider may serve.
func (r *Registry) explainBare(name string) string {
	if ext := path.Ext(name); ext == ".yaml" || ext == ".yml" {
		return "to use a script, write scripted/" + name
	}
	if name == "" {
		return "write provider/model, such as openai/gpt-5"
	}
	if !r.knowsOwn {
		return ""
	}
	if known := findProvider(name); known != "" && known != r.fallback {
		return explainProvider(known)
	}
	// A provider without its own families, such as Groq, may serve the models of others.
	own, _ := vendorOf(r.fallback)
	if meant := vendorByFamily(name); meant != "" && meant != r.fallback && len(own.families) > 0 {
		return fmt.Sprintf("the name has none, and %s does not have such a model: write %s/%s%s",
			r.fallback, meant, name, lister)
	}
	return ""
}

// explainProvider explains how to name a model of a provider.
func explainProvider(name string) string {
	v, ok := vendorOf(name)
	switch {
	case !ok && name == "acp":
		return "write acp/ and the command of an agent program"
	case !ok:
		return "write " + name + "/ and the path of a file"
	}
	return fmt.Sprintf("the name has a provider, but no model: write provider/model, such as %s/%s%s",
		name, v.example, lister)
}

// explainUnknown explains how to name a model whose provider is unknown.
func (r *Registry) explainUnknown(provider, id string) string {
	if meant := findProvider(provider); meant != "" {
		return fmt.Sprintf("%q: write %s/%s", provider, meant, id)
	}
	known := slices.Sorted(maps.Keys(r.openers))
	if meant := spelling.Nearest(strings.ToLower(provider), known); meant != "" {
		return fmt.Sprintf("%q: did you mean %s/%s?", provider, meant, id)
	}
	return fmt.Sprintf("%q: put one of %s before the name, as in openrouter/%s/%s",
		provider, strings.Join(known, ", "), provider, id)
}

// findProvider returns the provider with a name, regardless of case, or with another name that
// users try. It returns "" if there is none.
func findProvider(name string) string {
	name = strings.ToLower(name)
	for i := range vendors {
		if vendors[i].name == name || slices.Contains(vendors[i].aka, name) {
			return vendors[i].name
		}
	}
	return ""
}

// vendorByFamily returns the provider that has a family with which a name begins, or "" if there is
// none.
func vendorByFamily(name string) (found string) {
	longest := 0
	for i := range vendors {
		for _, family := range vendors[i].families {
			if len(family) > longest && strings.HasPrefix(strings.ToLower(name), family) {
				found, longest = vendors[i].name, len(family)
			}
		}
	}
	return found
}
