package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// Config configures a run: the task, the models and the bounds. A zero field means its default,
// never "no limit".
type Config struct {
	// Question is the task.
	Question string
	// Notes are further instructions to the root model, after its question. A run with Notes
	// always uses the loop.
	Notes string
	// System holds instructions for the root model, which are added to its system prompt.
	System string
	// Inputs become the variables context, context_1 and so on of the snippets. The caller keeps
	// them open until Run returns.
	Inputs []tiers.Input
	// Schema is the contract of the answer, in any form that [schema.Parse] accepts: JSON Schema,
	// or the name of a type such as "bool". Nil allows any answer.
	Schema json.RawMessage
	// Signature is a contract of named fields, such as "question, passage -> answer: str, score:
	// float"; it is an alternative to Schema. Fields are the values of its inputs. Each becomes a
	// variable of the snippets; without Inputs, the dict context holds all fields.
	Signature string
	Fields    map[string]tiers.Value

	// Models resolves the names of models.
	Models ledger.Models
	// Model is the model of the root loop. SubModel is for sub-loops and the model calls of
	// snippets; by default it is Model.
	Model, SubModel string
	// DepthModels names the model of the loops at each depth, from 0. The rules above apply to
	// depths without an entry and to empty entries.
	DepthModels []string
	// AllowedModels are further models that snippets may name.
	AllowedModels []string
	// MaxReply bounds the tokens of one reply; by default 8192. A sub-call that is repeated
	// because its reply was truncated or empty gets twice as many each time.
	MaxReply int

	// Open makes the runner of each loop's session.
	Open repl.Opener
	// SQL makes the function sql, with which snippets query inputs that are tables. Nil means none.
	SQL repl.SQL
	// Out, if set, is a folder on the host. When the run ends, it receives the files that the
	// root's snippets wrote below [tiers.OutFolder]. It is created if necessary; existing files are
	// kept.
	Out string
	// Limits bound each snippet.
	Limits tiers.Limits
	// Deterministic makes clocks and randomness in snippets repeatable.
	Deterministic bool
	// Tools are further host functions for the snippets. Nil means none.
	Tools *repl.Tools
	// ToolFiles hold further functions, which run inside the sandbox.
	ToolFiles []ToolFile
	// Agents are the agents that sub_agent_call can name.
	Agents map[string]repl.Agent

	// Budget bounds the whole tree.
	Budget ledger.Budget
	// MaxDepth bounds the nesting of sub-loops: at 1 the root can start loops, and these
	// cannot start others. 0 means the default of 1, -1 allows none. More than 3 needs
	// AllowDeep.
	MaxDepth  int
	AllowDeep bool
	// MaxTurns bounds the turns of each loop, by default 30.
	MaxTurns int
	// FeedbackChars bounds the part of a turn's output that the model sees, in
	// characters, by default 20,000.
	FeedbackChars int
	// NoPreview omits the first 200 characters of each input from the prompt.
	NoPreview bool
	// CallsAtOnce bounds model calls in flight in the whole tree, by default 64. LoopsAtOnce
	// bounds the sub-loops that one loop runs concurrently, by default 4.
	CallsAtOnce, LoopsAtOnce int
	// Retries bounds how often a sub-call is repeated when its answer violates its contract, is
	// truncated or is empty, by default 2; -1 means none.
	Retries int
	// ErrorTexts makes llm_query, rlm_query and the other calls that return one string return
	// "Error: " and the reason when they fail, instead of raising an exception.
	ErrorTexts bool
	// MaxErrors ends a loop after that many consecutive turns with the same failure, by default
	// 3; -1 means never.
	MaxErrors int
	// CompactAt is the fraction of the model's window at which a loop's messages are replaced
	// with a summary, by default 0.7.
	CompactAt float64
	// Bypass is the size, in tokens, up to which one call answers a question and its inputs,
	// without a loop; by default 4096; -1 means never. It is capped at half of the model's window.
	// The loop always answers if there are Tools, Agents, a directory or no input, or if the model
	// requests code.
	Bypass int
	// NoSynthesis ends the run when the turns run out, instead of asking once more for the best
	// answer.
	NoSynthesis bool

	// Approve decides on each tool call of a snippet before the call is made. If it returns nil,
	// the call is made; an error that wraps [repl.ErrLater] parks the run until a human decides,
	// and any other error denies the call: the snippet gets an exception with its message. Spent is
	// the run's spending up to the call. Approve is called concurrently. A nil Approve makes all
	// calls.
	Approve func(ctx context.Context, call tiers.Call, spent ledger.Spending) error

	// Triggers configure when ShouldTrigger recommends a run.
	Triggers Triggers

	// Trace is the folder for the record; empty for none. It must not hold a record yet.
	Trace string
	// Progress receives events as they happen. It is called concurrently and must return
	// quickly.
	Progress func(ledger.Event)
	// Stream also sends the pieces of the root's replies to Progress, as [ledger.EventDelta].
	Stream bool
}

// Defaults of Config.
const (
	defaultDepth       = 1
	mostDepth          = 3
	defaultTurns       = 30
	defaultCallsAtOnce = 64
	defaultLoopsAtOnce = 4
	defaultCompactAt   = 0.7
	defaultErrors      = 3
	defaultBypass      = 4096 // a larger bypass costs more than the turns it saves
)

// WithDefaults returns c with every zero field replaced by its default.
func (c Config) WithDefaults() Config {
	for _, f := range []struct {
		value    *int
		standard int
	}{
		{&c.MaxDepth, defaultDepth},
		{&c.MaxTurns, defaultTurns},
		{&c.FeedbackChars, turns.DefaultFeedback},
		{&c.CallsAtOnce, defaultCallsAtOnce},
		{&c.LoopsAtOnce, defaultLoopsAtOnce},
		{&c.Retries, calls.DefaultRetries},
		{&c.MaxReply, calls.DefaultReply},
		{&c.Bypass, defaultBypass},
		{&c.MaxErrors, defaultErrors},
	} {
		if *f.value == 0 {
			*f.value = f.standard
		}
	}

	c.MaxDepth, c.Retries, c.MaxErrors = max(0, c.MaxDepth), max(0, c.Retries), max(0, c.MaxErrors)
	if c.CompactAt == 0 {
		c.CompactAt = defaultCompactAt
	}
	if c.SubModel == "" {
		c.SubModel = c.Model
	}

	c.Triggers = c.Triggers.withDefaults()
	c.Budget = c.Budget.WithDefaults()

	return c
}

// validate reports the first invalid field of a complete Config.
func (c *Config) validate() error {
	switch {
	case c.Question == "":
		return errors.New("the question is empty")
	case c.Models == nil || c.Model == "":
		return errors.New("no model: set Models and Model")
	case c.Open == nil:
		return errors.New("cannot run snippets: set Config.Open")
	case c.MaxDepth > mostDepth && !c.AllowDeep:
		return fmt.Errorf(
			"a depth of %d is more than %d, and costs grow with each level: pass --allow-deep, or set AllowDeep",
			c.MaxDepth, mostDepth,
		)
	case c.MaxTurns < 0 || c.FeedbackChars < 0 || c.CallsAtOnce < 0 || c.LoopsAtOnce < 0 || c.MaxReply < 0:
		return errors.New("MaxTurns, FeedbackChars, CallsAtOnce, LoopsAtOnce or MaxReply is negative: " +
			"give a positive value, or 0 for the default")
	case !(c.CompactAt > 0 && c.CompactAt <= 1):
		return errors.New("CompactAt must be above 0 and at most 1")
	case math.IsNaN(c.Budget.USD):
		return errors.New("the budget in US dollars is not a number")
	case c.Schema != nil && c.Signature != "":
		return errors.New("both Schema and Signature are set: set only one")
	case c.Fields != nil && c.Signature == "":
		return errors.New("there are Fields, but no Signature: set both")
	}

	return errors.Join(c.checkAgents(), c.Limits.Validate())
}

// Check returns the error with which Run would reject the configuration before any work. The
// question may be missing.
func (c Config) Check() error {
	if c.Question == "" {
		c.Question = "?"
	}
	_, _, err := prepare(c, c.Budget.USD != 0)
	return err
}

// contract compiles the contract of the answer. It returns nil if any answer is allowed.
func (c *Config) contract() (*schema.Contract, error) {
	if c.Signature != "" {
		inputs, output, err := schema.FromSignature(c.Signature)
		if err != nil {
			return nil, err
		}
		for _, f := range inputs {
			if _, ok := c.Fields[f.Name]; !ok && c.Fields != nil {
				return nil, fmt.Errorf("the signature has the input %q, but Fields has no value for it", f.Name)
			}
		}
		for name := range c.Fields {
			if !slices.ContainsFunc(inputs, func(f schema.Field) bool { return f.Name == name }) {
				return nil, fmt.Errorf("the field %q is not an input of the signature", name)
			}
		}
		return output, nil
	}

	if c.Schema == nil {
		return nil, nil //nolint:nilnil // documented: no contract
	}
	return schema.Parse(c.Schema)
}

// modelAt returns the model of the loops at a depth.
func (c *Config) modelAt(depth int) string {
	if depth < len(c.DepthModels) && c.DepthModels[depth] != "" {
		return c.DepthModels[depth]
	}
	if depth == 0 {
		return c.Model
	}
	return c.SubModel
}

// models returns the names of all models that the run may ask, without duplicates.
func (c *Config) models() []string {
	all := []string{c.Model, c.SubModel}
	all = append(append(all, c.DepthModels...), c.AllowedModels...)
	for _, agent := range c.Agents {
		all = append(all, agent.Model)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}
