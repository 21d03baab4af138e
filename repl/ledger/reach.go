package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlmhq/rlm/repl/internal/fanout"
	"github.com/rlmhq/rlm/repl/llm"
)

// reachTime bounds the check of one server.
const reachTime = 30 * time.Second

// CheckModels asks the server of each model, all at the same time, whether it can serve the
// model. This costs no tokens. It ignores empty names and fails without any other. The
// error names every model that cannot be used.
func CheckModels(ctx context.Context, models Models, names ...string) error {
	if models == nil {
		return errors.New("no registry of models: set Models")
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	if len(names) == 0 {
		return errors.New("no model: name one, such as openai/gpt-5")
	}

	ctx, cancel := context.WithTimeoutCause(
		ctx, reachTime, fmt.Errorf("no answer in %v", reachTime),
	)
	defer cancel()
	slots := fanout.Run(
		ctx,
		len(names),
		len(names),
		func(ctx context.Context, i int) (struct{}, error) {
			model, err := models.Resolve(names[i])
			if err != nil {
				return struct{}{}, err
			}
			return struct{}{}, llm.Check(ctx, model.Provider, model.ID)
		},
	)

	var errs []error
	for i, slot := range slots {
		if slot.Err != nil {
			errs = append(errs, fmt.Errorf("cannot use model %s: %w", names[i], slot.Err))
		}
	}

	return errors.Join(errs...)
}
