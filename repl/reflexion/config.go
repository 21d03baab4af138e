package reflexion

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Config configures a run: the task, the models and the bounds. A zero field means its default,
// never "no limit".
type Config struct {
	// Task is the task that the draft must solve.
	Task string
	// Memory is the available knowledge, all of which is evidence.
	Memory Memory
	// Paths are files and folders to search for evidence.
	Paths []string

	// Models resolves the names of models.
	Models ledger.Models
	// Model writes and revises the drafts. SubModel judges them; by default it is Model.
	Model, SubModel string
	// EmbedModel is an embedding model, with which files in Paths are compared with the drafts by
	// meaning as well as by words. Its provider must use OpenAI's format; empty for none.
	EmbedModel string
	// MaxReply bounds the tokens of one reply; by default 8192.
	MaxReply int

	// MaxIterations bounds the drafts, by default 3, at most 100.
	MaxIterations int
	// Judges is the number of independent critiques of a draft, requested concurrently and
	// merged; by default 1, at most 16.
	Judges int
	// Retries bounds how often a judge is asked again after a critique that violates its
	// contract, by default 2. A negative number means none.
	Retries int
	// CallsAtOnce bounds model calls in flight, by default 16.
	CallsAtOnce int
	// Budget bounds the whole run.
	Budget ledger.Budget

	// Trace is the folder for the record; empty for none. It must not hold a record yet.
	Trace string
	// Progress receives events as they happen. It is called concurrently and must return
	// quickly.
	Progress func(ledger.Event)
	// Stream also sends the pieces of drafts to Progress as they arrive, as events of
	// kind [ledger.EventDelta].
	Stream bool
}

// Bounds and defaults of Config.
const (
	defaultIterations = 3
	mostIterations    = 100
	defaultJudges     = 1
	mostJudges        = 16
)

// withDefaults returns c with every zero field replaced by its default.
func (c Config) withDefaults() Config {
	for _, f := range []struct {
		value    *int
		standard int
	}{
		{&c.MaxIterations, defaultIterations},
		{&c.Judges, defaultJudges},
		{&c.Retries, calls.DefaultRetries},
		{&c.CallsAtOnce, mostJudges},
		{&c.MaxReply, calls.DefaultReply},
	} {
		if *f.value == 0 {
			*f.value = f.standard
		}
	}

	c.Retries = max(0, c.Retries)
	if c.SubModel == "" {
		c.SubModel = c.Model
	}
	c.Budget = c.Budget.WithDefaults()
	return c
}

// validate reports the first invalid field of a complete Config.
func (c *Config) validate() error {
	switch {
	case strings.TrimSpace(c.Task) == "":
		return errors.New("the task is empty")
	case c.Models == nil || c.Model == "":
		return errors.New("no model: set Models and Model")
	case c.EmbedModel != "" && len(c.Paths) == 0:
		return errors.New("a model for embeddings has nothing to compare: " +
			"give files or folders to search for evidence, or leave it out")
	case c.MaxIterations < 1 || c.MaxIterations > mostIterations:
		return fmt.Errorf(
			"the maximum number of drafts is %d: give 1 to %d, or 0 for the default", c.MaxIterations,
			mostIterations,
		)
	case c.Judges < 1 || c.Judges > mostJudges:
		return fmt.Errorf(
			"the number of judges is %d: give 1 to %d, or 0 for the default", c.Judges, mostJudges,
		)
	case c.CallsAtOnce < 0 || c.MaxReply < 0:
		return errors.New("CallsAtOnce or MaxReply is negative: " +
			"give a positive value, or 0 for the default")
	}

	return c.Memory.validate()
}
