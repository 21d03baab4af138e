package graph

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// instance is a copy of the engine over a view of the state. After a trap, only close is allowed.
type instance struct {
	*rustmodule.Instance
	graph    *Graph
	memory   *memory
	isBroken bool
}

// job is one call of the engine.
type job struct {
	operation uint32
	request   []byte
	input     io.Reader
	output    io.Writer
	isLoad    bool // bounded by LoadTimeout, not by fuel
}

// instantiate makes a copy of the engine over the current state.
func (g *Graph) instantiate(ctx context.Context) (*instance, error) {
	memory, err := g.state.view()
	if err != nil {
		return nil, err
	}
	in, err := g.engine.Instantiate(ctx, memory)
	if err != nil {
		return nil, fmt.Errorf("cannot start the graph's engine: %w", err)
	}
	return &instance{Instance: in, graph: g, memory: memory}, nil
}

// start makes an empty graph in fresh memory.
func (in *instance) start(ctx context.Context) error {
	if err := in.Prepare(ctx, in.graph.config.LoadTimeout); err != nil {
		return fmt.Errorf("cannot start the graph's engine: %w", in.explain(err, true))
	}
	return nil
}

// answerExtra is the room for an answer in addition to its bounded rows, in bytes.
const answerExtra = 4 << 20

// call runs one operation and returns a copy of its answer, without the success byte.
func (in *instance) call(ctx context.Context, job job) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	config := in.graph.config
	call := rustmodule.Job{
		Operation: job.operation, Request: job.request, Input: job.input, Output: job.output,
		Timeout: config.Timeout, Fuel: config.Fuel, MaxAnswer: uint64(config.MaxBytes) + answerExtra,
	}
	if job.isLoad {
		call.Timeout, call.Fuel = config.LoadTimeout, 0
	}

	answer, err := in.Call(ctx, call)
	if err != nil {
		in.isBroken = true
		return nil, in.explain(err, job.isLoad)
	}
	if answer[0] != 0 {
		return nil, failure(answer[0], &decoder{data: answer[1:]}, config)
	}
	return answer[1:], nil
}

// explain converts the error of a failed call to one for the caller.
func (in *instance) explain(err error, isLoad bool) error {
	config := in.graph.config

	if limit, ok := errors.AsType[*rustmodule.LimitError](err); ok {
		switch {
		case limit.Limit == "Memory":
			return &LimitError{"MaxMemory", fmt.Sprintf("%d MiB", config.MaxMemory>>20)}
		case limit.Limit == "Fuel":
			return &LimitError{"Fuel", fmt.Sprint(config.Fuel)}
		case isLoad:
			return &LimitError{"LoadTimeout", config.LoadTimeout.String()}
		}
		return &LimitError{"Timeout", config.Timeout.String()}
	}
	if errors.Is(err, rustmodule.ErrTooDeep) {
		return &QueryError{Message: "it is nested too deeply for the engine"}
	}
	if failure, ok := errors.AsType[*rustmodule.FailureError](err); ok {
		config.Logger.Warn("a graph's engine failed", "error", failure)
		return fmt.Errorf("the graph's engine failed, the graph is unchanged: %w", failure)
	}
	return err
}
