// Package runs starts, stores and ends the runs of a server, for all of its wires. A run is a
// durable run of the engine, with a record that names its tenant, a log of events, and a folder
// for its contexts.
package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// Profile is a name for models, budgets and tiers, which clients choose as rlm/NAME.
type Profile struct {
	Name string
	// Task provides the models, the budget, the policy and the tools. A run adds its question and
	// contexts.
	Task rlm.Task
	// Durability is that of sessions that request none: kept, the default, or idle.
	Durability string
	// Observe, if set, returns a function that observes the events of a run before it passes them
	// to next. Done sends the observer's remaining data, which may take some time.
	Observe func(ctx context.Context, next func(ledger.Event)) (
		progress func(ledger.Event), done func(), err error)
}

// DefaultProfile is the profile of requests that do not name one.
const DefaultProfile = "default"

var validProfile = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,31}$`)

// Check reports unusable profiles before a client uses them.
func (m *Manager) Check(ctx context.Context) error {
	var errs []error
	for i := range m.Profiles {
		errs = append(errs, m.check(ctx, &m.Profiles[i]))
	}
	return errors.Join(errs...)
}

func (m *Manager) check(ctx context.Context, p *Profile) error {
	if !validProfile.MatchString(p.Name) {
		return fmt.Errorf(
			"%.40q cannot name a profile: use up to 32 lower-case letters, digits, dots and hyphens", p.Name)
	}

	cfg := p.Task.Config // without the default budget, so that models without a price can be used
	cfg.Open = m.Engine.Opener(p.Task.Policy)
	if !p.HasModel() {
		err := cfg.Limits.Validate()
		return nameProfile(p, err)
	}
	err := cfg.Check()
	if err == nil {
		err = ledger.CheckModels(ctx, cfg.Models, nil, p.models()...)
	}
	return nameProfile(p, err)
}

// nameProfile adds the name of a profile to an error. Nil stays nil.
func nameProfile(p *Profile, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("profile %s: %w", p.Name, err)
}

// HasModel reports whether the profile has a model. Without a model, it can only serve sessions.
func (p *Profile) HasModel() bool {
	return p.Task.Config.Model != "" || len(p.Task.Config.DepthModels) > 0
}

// models returns the names of the profile's models.
func (p *Profile) models() []string {
	cfg := p.Task.Config.WithDefaults()
	names := slices.Concat([]string{cfg.Model, cfg.SubModel}, cfg.DepthModels, cfg.AllowedModels)
	for _, agent := range cfg.Agents {
		names = append(names, agent.Model)
	}
	return names
}

// root returns the model of the profile's root loop.
func (p *Profile) root() (llm.Model, error) {
	cfg := p.Task.Config.WithDefaults()
	name := cfg.Model
	if len(cfg.DepthModels) > 0 {
		name = cmp.Or(cfg.DepthModels[0], name)
	}

	model, err := cfg.Models.Resolve(name)
	if err != nil {
		return model, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return model, nil
}

// Profile returns a profile by name, or the default one for an empty name.
func (m *Manager) Profile(name string) (*Profile, error) {
	name = cmp.Or(name, DefaultProfile)
	if p := m.profiles[name]; p != nil {
		return p, nil
	}
	e := problem.New(http.StatusNotFound, "unknown_profile",
		"there is no profile %.40q: this server has %v", name, m.Names())
	e.Param = "model"
	return nil, e
}

// Answering returns a profile that has a model, by name. The error is for the client.
func (m *Manager) Answering(name string) (*Profile, error) {
	p, err := m.Profile(name)
	if err == nil && !p.HasModel() {
		return nil, problem.New(http.StatusUnprocessableEntity, "no_model",
			"this server has no model, so it runs code but answers no questions: "+
				"start it with rlm serve --model PROVIDER/NAME; rlm models lists the models that it can have")
	}
	return p, err
}

// Names returns the sorted names of the profiles that have a model.
func (m *Manager) Names() (names []string) {
	for name, p := range m.profiles {
		if p.HasModel() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// least returns the smaller of two bounds, where 0 means no bound.
func least[N int64 | float64 | time.Duration](a, b N) N {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// budget returns the budget of a run, which is the smaller of the profile's budget and the
// requested one. USD stays 0 if neither bounds it, so that models without a price can be used.
func (p *Profile) budget(spec *Spec) ledger.Budget {
	a, b := p.Task.Config.Budget.WithDefaults(), spec.Budget
	tight := ledger.Budget{
		Calls: least(a.Calls, b.Calls), ToolCalls: least(a.ToolCalls, b.ToolCalls), Tokens: least(a.Tokens, b.Tokens),
		InputTokens: least(a.InputTokens, b.InputTokens), OutputTokens: least(a.OutputTokens, b.OutputTokens),
		Wall: least(a.Wall, b.Wall),
	}

	if p.Task.Config.Budget.USD > 0 || b.USD > 0 {
		tight.USD = least(a.USD, b.USD)
	}
	return tight
}
