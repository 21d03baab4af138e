package run

import (
	"sync/atomic"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
)

// SessionTools returns the functions of a session that a person has: Tools and, if
// there is a model, those of the protocol. Their calls share one Budget, which begins
// now. Queries for a sub-loop go to the model at once.
func (c Config) SessionTools() (*repl.Tools, error) {
	c = c.WithDefaults()
	if c.Models == nil || c.Model == "" {
		return c.Tools, nil
	}

	caller, err := calls.NewCaller(calls.Caller{
		Models: c.Models, Gate: calls.NewGate(c.CallsAtOnce), MaxReply: c.MaxReply, Emit: c.Progress,
	}, c.Budget, nil, false)
	if err != nil {
		return nil, err
	}

	a := &answers.Answers{
		Caller: caller, Inputs: c.Inputs, Node: "0", Turn: new(atomic.Int64),
		Model: c.SubModel, Models: []string{c.Model, c.SubModel}, Agents: c.Agents,
		CallsAtOnce: c.CallsAtOnce, Loops: calls.NewGate(c.LoopsAtOnce), Retries: c.Retries,
	}

	return c.Tools.With(a.Functions()...)
}
