package reflect

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// Config says with which models and within which bounds a reflection works. A zero
// field means its default, never "no limit".
type Config struct {
	// Models resolves the names of models.
	Models ledger.Models
	// Model is the reflector's.
	Model string
	// SubagentModel answers ask_llm and the like, by default Model.
	SubagentModel string
	// MaxReply bounds the tokens of one reply of Model; by default
	// 8192.
	MaxReply int
	// PromptTemplate is the first message, by default prompts/reflector.md. It has
	// each of the names of promptVariables in braces; a brace of its own is written twice.
	PromptTemplate string

	// Open makes the runner of the session.
	Open repl.Opener
	// Limits bound each snippet. Timeout stands in for their Wall.
	Limits tiers.Limits
	// Timeout is the time that a snippet may take, by default 30 seconds. Waiting for
	// models is not charged.
	Timeout time.Duration
	// Deterministic makes clocks and randomness in snippets repeatable.
	Deterministic bool

	// MaxIterations bounds the iterations, by default 20.
	MaxIterations int
	// MaxLLMCalls bounds the calls of the reflector and of its helpers together, by
	// default 30. It is the Calls of Budget.
	MaxLLMCalls int
	// Budget bounds what else is used: tokens, US dollars, time.
	Budget ledger.Budget
	// MaxContextChars is from how many characters on the messages are trimmed before
	// they are sent, by default 50,000.
	MaxContextChars int
	// MaxOutputChars is how much of a snippet's output the model is shown, and the
	// record keeps, by default 20,000.
	MaxOutputChars int
	// CallsAtOnce bounds model calls in flight, by default 16.
	CallsAtOnce int

	// NoLLMQuery leaves llm_query and what is built on it out of the sandbox.
	NoLLMQuery bool
	// NoSubagent makes ask_llm, and llm_query with it, answer that it is disabled.
	NoSubagent bool
	// SubagentMaxTokens bounds the tokens of a helper's reply, by default 8192;
	// SubagentTemperature is its temperature, by default 0.3.
	SubagentMaxTokens   int
	SubagentTemperature *float64
	// SubagentSystemPrompt is the helper's in a mode that is neither "analysis" nor
	// "deep_dive"; by default it is that of "analysis".
	SubagentSystemPrompt string

	// NoSynthesis gives up at the end of the iterations instead of asking once more
	// for the best assessment so far.
	NoSynthesis bool

	// Trace is a folder for the record; empty is none. It must hold no trace yet.
	Trace string
	// Progress is told what happens, as it happens. It is called concurrently and
	// must be quick.
	Progress func(ledger.Event)
	// Stream also tells Progress of the pieces of the reflector's replies.
	Stream bool
}

// Defaults of Config.
const (
	defaultIterations          = 20
	defaultTimeout             = 30 * time.Second
	defaultLLMCalls            = 30
	defaultContextChars        = 50_000
	defaultSubagentMaxTokens   = 8_192
	defaultSubagentTemperature = 0.3
	defaultCallsAtOnce         = 16
)

// WithDefaults returns c with every zero field replaced by its default.
func (c Config) withDefaults() Config {
	for _, f := range []struct {
		value    *int
		standard int
	}{
		{&c.MaxIterations, defaultIterations},
		{&c.MaxLLMCalls, defaultLLMCalls},
		{&c.MaxContextChars, defaultContextChars},
		{&c.MaxOutputChars, turns.DefaultFeedback},
		{&c.CallsAtOnce, defaultCallsAtOnce},
		{&c.SubagentMaxTokens, defaultSubagentMaxTokens},
		{&c.MaxReply, calls.DefaultReply},
	} {
		if *f.value == 0 {
			*f.value = f.standard
		}
	}

	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.SubagentTemperature == nil {
		standard := defaultSubagentTemperature
		c.SubagentTemperature = &standard
	}

	if c.SubagentSystemPrompt == "" {
		c.SubagentSystemPrompt = answers.ModePrompt("analysis")
	}
	if c.SubagentModel == "" {
		c.SubagentModel = c.Model
	}
	if c.PromptTemplate == "" {
		c.PromptTemplate = defaultPromptTemplate
	}
	if c.Limits.Wall == 0 {
		c.Limits.Wall = c.Timeout
	}
	if c.Budget.Calls == 0 {
		c.Budget.Calls = int64(c.MaxLLMCalls)
	}

	c.Budget = c.Budget.WithDefaults()
	return c
}

// validate reports the first field of a complete Config that makes no sense.
func (c *Config) validate() error {
	switch {
	case c.Models == nil || c.Model == "":
		return errors.New("there is no model: name one")
	case c.Open == nil:
		return errors.New("there is nothing to run snippets in: set Config.Open")
	case slices.Min([]int{
		c.MaxIterations, c.MaxLLMCalls, c.MaxContextChars, c.MaxOutputChars, c.CallsAtOnce,
		c.SubagentMaxTokens, c.MaxReply,
	}) < 0 || c.Timeout < 0:
		return errors.New("a bound is negative: give a positive value, or 0 for the default")
	case c.Limits.Wall != c.Timeout:
		return fmt.Errorf(
			"snippets have two limits of time, %v and %v: set Config.Timeout alone", c.Limits.Wall,
			c.Timeout,
		)
	case c.Budget.Calls != int64(c.MaxLLMCalls):
		return fmt.Errorf(
			"there are two limits of calls, %d and %d: set Config.MaxLLMCalls alone",
			c.Budget.Calls, c.MaxLLMCalls,
		)
	case !(*c.SubagentTemperature >= 0 && *c.SubagentTemperature <= 2):
		return fmt.Errorf(
			"a temperature of %v makes no sense: give a number from 0 to 2", *c.SubagentTemperature,
		)
	}

	return c.Limits.Validate()
}

// models are all that may be asked, each once.
func (c *Config) models() []string {
	return slices.Compact([]string{c.Model, c.SubagentModel})
}
