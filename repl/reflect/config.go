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

// Config configures a reflection: its models and bounds. A zero field means its default, never
// "no limit".
type Config struct {
	// Models resolves the names of models.
	Models ledger.Models
	// Model is the reflector's model.
	Model string
	// SubModel answers ask_llm and similar calls; by default it is Model.
	SubModel string
	// MaxReply bounds the tokens of one reply of Model; by default
	// 8192.
	MaxReply int
	// PromptTemplate is the first message, by default prompts/reflector.md. It contains
	// each of that file's variables in braces; literal braces are doubled.
	PromptTemplate string

	// Open makes the runner of the session.
	Open repl.Opener
	// Limits bound each snippet. Timeout replaces their Wall.
	Limits tiers.Limits
	// Timeout bounds the time of a snippet, by default 30 seconds. Time spent waiting for models is
	// excluded.
	Timeout time.Duration
	// Deterministic makes clocks and randomness in snippets repeatable.
	Deterministic bool

	// MaxIterations bounds the iterations, by default 20.
	MaxIterations int
	// MaxLLMCalls bounds the total calls of the reflector and its helpers, by default 30. It is
	// the Calls of Budget.
	MaxLLMCalls int
	// Budget bounds tokens, US dollars and time.
	Budget ledger.Budget
	// MaxContextChars bounds the messages of a call, in characters, by default 50,000.
	// Longer conversations are trimmed.
	MaxContextChars int
	// MaxOutputChars bounds the part of a snippet's output that the model sees and the
	// record keeps, in characters, by default 20,000.
	MaxOutputChars int
	// CallsAtOnce bounds model calls in flight, by default 64.
	CallsAtOnce int

	// Tools are further host functions for the snippets. Nil means none.
	Tools *repl.Tools

	// NoLLMQuery removes llm_query, and the functions built on it, from the sandbox.
	NoLLMQuery bool
	// NoSubagent makes ask_llm and llm_query answer that they are disabled.
	NoSubagent bool
	// SubagentMaxTokens bounds the tokens of a helper's reply, by default 8192;
	// SubagentTemperature is its temperature, by default 0.3.
	SubagentMaxTokens   int
	SubagentTemperature *float64
	// SubagentSystemPrompt is the helper's system prompt in modes other than "analysis" and
	// "deep_dive"; by default, the prompt of "analysis".
	SubagentSystemPrompt string

	// NoSynthesis ends the run when the iterations run out, instead of asking once more for the
	// best assessment.
	NoSynthesis bool

	// Trace is the folder for the record; empty for none. It must not hold a record yet.
	Trace string
	// Progress receives events as they happen. It is called concurrently and must return
	// quickly.
	Progress func(ledger.Event)
	// Stream also sends the pieces of the reflector's replies to Progress.
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
	defaultCallsAtOnce         = 64
)

// withDefaults returns c with every zero field replaced by its default.
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
	if c.SubModel == "" {
		c.SubModel = c.Model
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

// validate reports the first invalid field of a complete Config.
func (c *Config) validate() error {
	switch {
	case c.Models == nil || c.Model == "":
		return errors.New("no model: set Models and Model")
	case c.Open == nil:
		return errors.New("cannot run snippets: set Config.Open")
	case slices.Min([]int{
		c.MaxIterations, c.MaxLLMCalls, c.MaxContextChars, c.MaxOutputChars, c.CallsAtOnce,
		c.SubagentMaxTokens, c.MaxReply,
	}) < 0 || c.Timeout < 0:
		return errors.New("the timeout or a maximum is negative: " +
			"give a positive value, or 0 for the default")
	case c.Limits.Wall != c.Timeout:
		return fmt.Errorf(
			"Limits.Wall is %v, but Timeout is %v: set only Timeout", c.Limits.Wall,
			c.Timeout,
		)
	case c.Budget.Calls != int64(c.MaxLLMCalls):
		return fmt.Errorf(
			"Budget.Calls is %d, but MaxLLMCalls is %d: set only MaxLLMCalls",
			c.Budget.Calls, c.MaxLLMCalls,
		)
	case !(*c.SubagentTemperature >= 0 && *c.SubagentTemperature <= 2):
		return fmt.Errorf(
			"the sub-agent's temperature is %v: give a number from 0 to 2",
			*c.SubagentTemperature,
		)
	}

	return c.Limits.Validate()
}

// models returns the names of all models that the run may ask, without duplicates.
func (c *Config) models() []string {
	return slices.Compact([]string{c.Model, c.SubModel})
}
