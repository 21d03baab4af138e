package providers

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/internal/prices"
	"github.com/rlmhq/rlm/repl/llm/internal/told"
)

// Registry resolves the names of models. A name is "provider/id": the part before the first
// slash selects the provider, the rest is the provider's own name for the model and may contain
// slashes. It is safe for concurrent use.
type Registry struct {
	fallback string            // the provider of names without a slash
	own      *prices.Table     // of the caller
	sampling []llm.Sampling    // of the caller, by depth
	openers  map[string]opener // does not change after New

	mu   sync.Mutex
	kept []io.Closer
}

// opener returns the provider behind the names with one prefix. It is called for each name, so
// it caches a provider that has connections to share. Its errors explain what to set.
type opener func(id string) (llm.Provider, error)

// Resolve returns the model with the given name. The error explains what is wrong with the name,
// or what the provider lacks, such as a key.
func (r *Registry) Resolve(name string) (llm.Model, error) {
	provider, id, found := strings.Cut(name, "/")
	switch ext := path.Ext(name); {
	case !found && (ext == ".yaml" || ext == ".yml"):
		return llm.Model{}, &llm.Error{
			Kind: kind.ErrUnknownName, Model: name,
			Message: "to use a script, write scripted/" + name,
		}
	case !found:
		provider, id = r.fallback, name
	}
	if id == "" {
		return llm.Model{}, &llm.Error{
			Kind: kind.ErrUnknownName, Model: name,
			Message: "write provider/model, such as openai/gpt-5",
		}
	}

	open, ok := r.openers[provider]
	if !ok {
		return llm.Model{}, &llm.Error{
			Kind: kind.ErrUnknownName, Model: name, Message: r.explainUnknown(provider, id),
		}
	}
	p, err := open(id)
	if err != nil {
		return llm.Model{}, err
	}

	full := provider + "/" + id
	facts := r.facts(full, told.By(p, id))
	if len(r.sampling) > 0 {
		p = sampled{p, r.sampling}
	}
	return llm.Model{Name: full, ID: id, Provider: p, Facts: facts}, nil
}

// explainUnknown explains how to name a model whose provider is unknown.
func (r *Registry) explainUnknown(provider, id string) string {
	if lower := strings.ToLower(provider); r.openers[lower] != nil {
		return fmt.Sprintf("unknown provider %q: write %s/%s", provider, lower, id)
	}
	known := strings.Join(slices.Sorted(maps.Keys(r.openers)), ", ")
	return fmt.Sprintf("unknown provider %q; put one of %s before the name, as in openrouter/%s/%s",
		provider, known, provider, id)
}

// facts returns what is known about a model: from the caller, from its server, from the
// built-in table.
func (r *Registry) facts(name string, byServer llm.Facts) llm.Facts {
	return told.Or(r.own.Lookup(name), told.Or(byServer, prices.Default().Lookup(name)))
}

// keep registers something that is closed with the registry, such as connections.
func (r *Registry) keep(c io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.kept = append(r.kept, c)
}

// Close closes the connections and call logs of all providers, which must not be used
// afterwards.
func (r *Registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()

	var all []error
	for _, c := range slices.Backward(r.kept) {
		all = append(all, c.Close())
	}
	r.kept = nil
	return errors.Join(all...)
}
