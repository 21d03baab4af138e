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

// Config is converted from workflow.Config, which documents the fields: the documentation of a
// public type belongs in a public package, and the conversion does not compile if the types differ.
type Config struct {
	Models        ledger.Models
	Model         string
	AllowedModels []string
	ModelFor      map[string]string
	MaxReply      int
	Retries       int
	CallsAtOnce   int
	Open          repl.Opener
	Limits        tiers.Limits
	Deterministic bool
	Budget        ledger.Budget
	Trace         string
	Progress      func(ledger.Event)
}

// DefaultCallsAtOnce bounds model calls in flight.
const DefaultCallsAtOnce = 64

// withDefaults returns c with every zero field replaced by its default.
func (c Config) withDefaults() (Config, error) {
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

// allowed returns the models that the file may ask, without duplicates.
func (c *Config) allowed() []string {
	all := append([]string{c.Model}, c.AllowedModels...)
	all = append(all, slices.Collect(maps.Values(c.ModelFor))...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}

// noModel is the problem reported for a step that needs a model in a run without one.
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
