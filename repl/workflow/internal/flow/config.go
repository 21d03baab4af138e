package flow

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// Config describes a run of a file: actions, models and bounds. A zero field means its
// default, never "no limit".
type Config struct {
	// Actions are the actions of the file; nil means those of this package.
	Actions Actions
	// Models resolves the names of models.
	Models ledger.Models
	// Model is the model of steps that name none. The state's member "model" replaces it
	// if it names an allowed model.
	Model string
	// Allowed are further models that the file may name.
	Allowed []string
	// ModelFor replaces models that the file names with others.
	ModelFor map[string]string
	// MaxReply bounds the tokens of one reply; by default 8192.
	MaxReply int
	// Retries bounds how often a model is asked again after a reply that breaks its
	// contract, by default 2. A negative number means none.
	Retries int
	// CallsAtOnce bounds model calls in flight, by default 64.
	CallsAtOnce int

	// Open makes the runner of the session that runs Python. It is needed only if the
	// file has any.
	Open repl.Opener
	// Limits bound each piece of code. Of Lua, Prolog and templates they bound time and
	// memory, by default 10 s and 128 MiB.
	Limits tiers.Limits
	// Deterministic makes clocks and randomness in Python repeatable.
	Deterministic bool

	// Budget is for the whole run.
	Budget ledger.Budget
	// Trace is the folder for the record, empty for none. It must not hold a trace yet.
	// Each node is a sub-loop in it.
	Trace string
	// Progress receives events as they happen. It must return quickly. The run is node
	// "0" of the events, the first node of the file "0.1"; what a loop is at is its turn.
	Progress func(ledger.Event)
}

// DefaultCallsAtOnce bounds model calls in flight.
const DefaultCallsAtOnce = 64

// withDefaults returns c with every zero field replaced by its default.
func (c Config) withDefaults() (Config, error) {
	if c.Actions == nil {
		actions, err := NewActions()
		if err != nil {
			return c, err
		}
		c.Actions = actions
	}

	if c.Retries == 0 {
		c.Retries = calls.DefaultRetries
	}
	c.Retries = max(0, c.Retries)
	if c.CallsAtOnce == 0 {
		c.CallsAtOnce = DefaultCallsAtOnce
	}
	if c.CallsAtOnce < 0 || c.MaxReply < 0 {
		return c, errors.New("CallsAtOnce or MaxReply is negative: " +
			"give a positive value, or 0 for the default")
	}

	return c, c.Limits.Validate()
}

// allowed returns the models that the file may ask, each once.
func (c *Config) allowed() []string {
	all := append([]string{c.Model}, c.Allowed...)
	all = append(all, slices.Collect(maps.Values(c.ModelFor))...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}

// noModel is the problem of a step that needs a model in a run without one.
const noModel = "no model to ask: name an allowed model in the file, " +
	"or give the run a model, such as openai/gpt-5"

// resolve returns the model for a name in the file; the empty name means the default.
func (c *Config) resolve(name string) (string, error) {
	if instead, ok := c.ModelFor[name]; ok {
		return instead, nil
	}
	if name == "" {
		name = c.Model
	}

	switch {
	case name == "":
		return "", errors.New(noModel)
	case !slices.Contains(c.allowed(), name):
		return "", fmt.Errorf(
			"the file names the model %s, which is not allowed: add it with --allowed-models, "+
				"or replace it with --model-for",
			quoteName(name),
		)
	}

	return name, nil
}
