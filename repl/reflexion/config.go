package reflexion

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Config says what a run is to do, with what, and within which bounds. A zero
// field means its default, never "no limit".
type Config struct {
	// Task is what the draft has to do.
	Task string
	// Memory is what is known already. All of it is evidence.
	Memory Memory
	// Paths are files and folders that are searched for evidence.
	Paths []string

	// Models resolves the names of models.
	Models ledger.Models
	// Model writes and revises the drafts, JudgeModel judges them; by default Model.
	Model, JudgeModel string
	// MaxReply bounds the tokens of one reply; by default 8192.
	MaxReply int

	// MaxIterations bounds the drafts, by default 3, at most MostIterations.
	MaxIterations int
	// Judges is how many critiques of a draft are asked for, at the same time and
	// independently; by default 1, at most MostJudges. See [Merge].
	Judges int
	// Retries is how often a critique that breaks its contract is asked for again, by
	// default 2. A negative number is none.
	Retries int
	// CallsAtOnce bounds model calls in flight, by default MostJudges.
	CallsAtOnce int
	// Budget is for the whole run.
	Budget ledger.Budget

	// Trace is a folder for the record; empty is none. It must hold no trace yet.
	Trace string
	// Progress is told what happens, as it happens. It is called concurrently and
	// must be quick.
	Progress func(ledger.Event)
	// Stream also tells Progress of the pieces of drafts as they arrive, as events of
	// kind [ledger.EventDelta].
	Stream bool
}

// Bounds and defaults of Config.
const (
	DefaultIterations = 3
	MostIterations    = 100
	DefaultJudges     = 1
	MostJudges        = 16
)

// WithDefaults returns c with every zero field replaced by its default.
func (c Config) WithDefaults() Config {
	for _, f := range []struct {
		value    *int
		standard int
	}{
		{&c.MaxIterations, DefaultIterations},
		{&c.Judges, DefaultJudges},
		{&c.Retries, calls.DefaultRetries},
		{&c.CallsAtOnce, MostJudges},
		{&c.MaxReply, calls.DefaultReply},
	} {
		if *f.value == 0 {
			*f.value = f.standard
		}
	}
	c.Retries = max(0, c.Retries)
	if c.JudgeModel == "" {
		c.JudgeModel = c.Model
	}
	c.Budget = c.Budget.WithDefaults()
	return c
}

// validate reports the first field of a complete Config that makes no sense.
func (c *Config) validate() error {
	switch {
	case strings.TrimSpace(c.Task) == "":
		return errors.New("there is no task")
	case c.Models == nil || c.Model == "":
		return errors.New("there is no model: name one")
	case c.MaxIterations < 1 || c.MaxIterations > MostIterations:
		return fmt.Errorf("%d iterations make no sense: give 1 to %d, or 0 for the default", c.MaxIterations, MostIterations)
	case c.Judges < 1 || c.Judges > MostJudges:
		return fmt.Errorf("%d judges make no sense: give 1 to %d, or 0 for the default", c.Judges, MostJudges)
	case c.CallsAtOnce < 0 || c.MaxReply < 0:
		return errors.New("a bound is negative: give a positive value, or 0 for the default")
	}
	return c.Memory.validate()
}
