package llm

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Model is a name that was resolved: whom to ask, for what, at what price.
type Model struct {
	Name     string // in full, "openai/gpt-5"
	ID       string // as the provider names it, "gpt-5"; goes into Request.Model
	Provider Provider
	Facts    Facts
}

// Opener makes the provider behind a part of names, and says what the provider
// calls the model. It is asked again for each name, so an opener that has
// connections to share keeps its provider. Its errors name what to set.
type Opener func(id string) (p Provider, model string, err error)

// Registry turns the names of models into models. A name is "provider/id"; the
// part before the first slash picks the provider, the rest is the provider's
// own name for the model and may have slashes in it. It is safe for concurrent use.
type Registry struct {
	fallback string
	prices   *PriceTable
	mu       sync.Mutex
	openers  map[string]Opener
	owned    []io.Closer
}

// NewRegistry returns a registry without providers. Names without a slash
// belong to the provider called fallback.
func NewRegistry(fallback string, prices *PriceTable) *Registry {
	return &Registry{fallback: fallback, prices: prices, openers: map[string]Opener{}}
}

// Register adds a provider, or replaces the one of that name.
func (r *Registry) Register(provider string, open Opener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.openers[provider] = open
}

// Resolve returns the model of a name. The error is of kind [ErrUnknownName],
// or what the provider's opener says: [ErrNoKey], [ErrMisconfigured], [ErrBadFile].
func (r *Registry) Resolve(name string) (Model, error) {
	provider, id, found := strings.Cut(name, "/")
	if !found {
		provider, id = r.fallback, name
	}
	if id == "" {
		return Model{}, &Error{Kind: ErrUnknownName, Model: name, Message: "a name is provider/model, such as openai/gpt-5"}
	}
	r.mu.Lock()
	open, known := r.openers[provider]
	names := slices.Sorted(maps.Keys(r.openers))
	r.mu.Unlock()
	if !known {
		return Model{}, &Error{Kind: ErrUnknownName, Model: name, Message: fmt.Sprintf(
			"no provider is called %q; put one of %s before the name, as in openrouter/%s", provider, strings.Join(names, ", "), name)}
	}
	p, model, err := open(id)
	if err != nil {
		return Model{}, err
	}
	full := provider + "/" + id
	return Model{Name: full, ID: model, Provider: p, Facts: r.prices.Lookup(full)}, nil
}

// Own takes over something to close with the registry, such as connections.
func (r *Registry) Own(c io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owned = append(r.owned, c)
}

// Close closes what the registry owns. Providers must not be asked any more.
func (r *Registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []error
	for _, c := range slices.Backward(r.owned) {
		all = append(all, c.Close())
	}
	r.owned = nil
	return errors.Join(all...)
}

// Prices returns the table that the registry looks facts up in.
func (r *Registry) Prices() *PriceTable { return r.prices }
