package run

import (
	"sync/atomic"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/tiers"
)

// SessionTools returns a constructor for the functions of a session outside of a loop:
// Tools and, if there is a model, the functions of the protocol over the session's
// inputs. All their calls share one Budget, which begins now. Queries for a sub-loop go
// directly to the model.
func (c Config) SessionTools() (func(inputs []tiers.Input) (*repl.Tools, error), error) {
	c = c.WithDefaults()
	if c.Models == nil || c.Model == "" {
		return func([]tiers.Input) (*repl.Tools, error) { return c.Tools, nil }, nil
	}

	caller, err := calls.NewCaller(calls.Caller{
		Models: c.Models, Gate: calls.NewGate(c.CallsAtOnce), MaxReply: c.MaxReply,
		Emit: c.Progress,
	}, c.Budget, nil, false)
	if err != nil {
		return nil, err
	}

	return func(inputs []tiers.Input) (*repl.Tools, error) {
		a := &answers.Answers{
			Caller: caller, Inputs: inputs, Node: "0", Turn: new(atomic.Int64),
			Model: c.SubModel, Models: []string{c.Model, c.SubModel}, Agents: c.Agents,
			CallsAtOnce: c.CallsAtOnce, Loops: calls.NewGate(c.LoopsAtOnce), Retries: c.Retries,
		}
		return c.Tools.With(a.Functions()...)
	}, nil
}
