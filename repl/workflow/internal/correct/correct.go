package correct

import (
	"context"
	"fmt"
	"maps"

	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

// Correct has a value corrected by a step, whose templates find it as
// state.reflection_output and what is wrong with it as state.reflection_errors.
// Code finds both also as output and errors. A text that a model answers with, and
// that holds an object or a list, is that value.
func Correct(ctx context.Context, r *flow.Run, step Step, data any, errs []any) (any, error) {
	if errs == nil {
		errs = []any{}
	}
	defer scopeState(r)()
	if err := r.Set(map[string]any{stateOutput: data, stateErrors: errs}); err != nil {
		return nil, err
	}

	value, err := step.do(ctx, r, "the corrector", map[string]any{"output": data, "errors": errs})
	if err != nil {
		return nil, fmt.Errorf("the corrector: %w", err)
	}
	if text, ok := value.(string); ok && step.Action == flow.LLMCall {
		if inner, ok := parseStructured(text); ok {
			return inner, nil
		}
	}

	return value, nil
}

// do makes an output. The reply of llm.call is the output, other actions' results
// are as they are. Code finds state and more.
func (s *Step) do(ctx context.Context, r *flow.Run, what string, more map[string]any) (any, error) {
	if s.Action == "" {
		values := map[string]any{"state": r.State}
		maps.Copy(values, more)
		return r.Python(ctx, flow.Code{Source: s.Run, What: what, Name: what, Values: values})
	}
	value, err := r.Act(ctx, s.Action, s.With)
	if err != nil {
		return nil, err
	}
	if result, ok := value.(map[string]any); ok && s.Action == flow.LLMCall {
		return result["content"], nil
	}

	return value, nil
}
