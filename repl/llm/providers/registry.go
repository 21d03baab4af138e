package providers

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/prices"
	"github.com/rlmhq/rlm/repl/llm/internal/told"
)

// Registry resolves the names of models. A name is "provider/id": the part before the first
// slash selects the provider, the rest is the provider's own name for the model and may contain
// slashes. It is safe for concurrent use.
type Registry struct {
	fallback string            // the provider of names without a slash
	knowsOwn bool              // the fallback serves only its own models, at its vendor's address
	own      *prices.Table     // of the caller
	sampling []llm.Sampling    // of the caller, by depth
	openers  map[string]opener // does not change after New

	mu   sync.Mutex
	kept []io.Closer
}

// opener returns the provider behind the names with one prefix. It is called for each name, so it
// caches a provider that has connections to share. Its errors say what to set.
type opener func(id string) (llm.Provider, error)

// Resolve returns the model with the given name. The error explains the mistake in the name, or
// names the provider's missing setting, such as a key.
func (r *Registry) Resolve(name string) (llm.Model, error) {
	provider, id, err := r.split(name)
	if err != nil {
		return llm.Model{}, err
	}
	p, err := r.openers[provider](id)
	if err != nil {
		return llm.Model{}, noteDefault(err, name, provider)
	}

	full := provider + "/" + id
	facts := r.facts(provider, full, told.By(p, id))
	if len(r.sampling) > 0 {
		p = sampled{p, r.sampling}
	}
	return llm.Model{Name: full, ID: id, Provider: p, Facts: facts}, nil
}

// noteDefault adds to an error that the default provider was meant, if the name has none.
func noteDefault(err error, name, provider string) error {
	var failed *llm.Error
	if strings.Contains(name, "/") || !errors.As(err, &failed) {
		return err
	}
	noted := *failed
	noted.Message += fmt.Sprintf("; %s has no provider, so it means %s/%s%s", name, provider, name, lister)
	return &noted
}

// facts returns the known facts about a model: from the caller, from its server, then from the
// built-in table. A model on a machine of the user costs 0 if no price is known.
func (r *Registry) facts(provider, name string, byServer llm.Facts) llm.Facts {
	facts := told.Or(r.own.Lookup(name), told.Or(byServer, prices.Default().Lookup(name)))
	v, _ := vendorOf(provider)
	isLocal := facts.Local || v.runs == atHome
	if facts.Local = isLocal && facts.Price == nil; facts.Local {
		facts.Price = &llm.Price{}
	}
	return facts
}

// keep registers a resource that is closed with the registry, such as connections.
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
