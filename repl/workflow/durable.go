package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

// keepAction returns a function that does the work of an embedder's action and stores the result in
// the run log, so that a resumed run does not repeat the work. A failure ends the run, so it is not
// stored.
func keepAction(a *Action) func(ctx context.Context, r *flow.Run, with map[string]any) (any, error) {
	name, do := a.Name, a.Do
	return func(ctx context.Context, r *flow.Run, with map[string]any) (any, error) {
		whole, err := json.Marshal(struct {
			Action string         `json:"action"`
			With   map[string]any `json:"with,omitempty"`
		}{name, with})
		if err != nil {
			return nil, fmt.Errorf("the parameters of %s cannot be encoded: %w", name, err)
		}
		step, err := runlog.Begin(ctx, func() runlog.Request {
			sum := sha256.Sum256(whole)
			return runlog.Request{What: "action " + name, Digest: hex.EncodeToString(sum[:]), About: string(whole)}
		})
		if err != nil {
			return nil, err
		}
		defer step.Leave()
		if kept, ok := step.Ending(); ok {
			return flow.Decode(kept)
		}

		result, err := callAction(ctx, step, whole, func() (any, error) { return do(ctx, r.State, with) })
		if err != nil {
			return nil, err
		}
		if failed := step.End(ctx, result, store.Cost{}); failed != nil {
			return nil, failed
		}
		return result, nil
	}
}

// callAction does the work of an action, unless a human decided otherwise. Work whose result
// comes later parks the run.
func callAction(
	ctx context.Context, step *runlog.Step, whole json.RawMessage, do func() (any, error),
) (any, error) {
	switch d := step.Decision(); {
	case d == nil:
	case !d.Allow:
		return nil, fmt.Errorf("it was denied: %s", d.Reason)
	case d.Value != nil:
		return flow.Decode(d.Value)
	}

	result, err := do()
	if errors.Is(err, repl.ErrLater) {
		err = step.Park(ctx, whole, err.Error())
	}
	return result, err
}
