package correct

import (
	"context"
	"fmt"
	"maps"

	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

// Correct corrects a value with a step. Templates see the value as state.reflection_output and
// its errors as state.reflection_errors; code also sees them as output and errors. A model's reply
// that contains an object or a list becomes that value.
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

// do makes an output. The output of llm.call is the reply, that of other actions their result. Code
// sees state and the values in more.
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
