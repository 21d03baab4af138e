package fanout

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/keep/runlog"
)

// Slot is the outcome of one of many operations.
type Slot[T any] struct {
	Value T
	Err   error
}

// Run calls f for 0 to n-1, at most limit at a time, and returns the outcomes in order. A failed
// slot does not stop the others. When ctx ends, slots that have not started fail with its cause.
func Run[T any](
	ctx context.Context, n, limit int, f func(ctx context.Context, i int) (T, error),
) []Slot[T] {
	slots := make([]Slot[T], n)
	var group errgroup.Group
	group.SetLimit(max(1, limit))
	slot := runlog.Slots(ctx, n)
	for i := range n {
		group.Go(func() error {
			ctx, ended := slot(i)
			defer ended()
			if slots[i].Err = context.Cause(ctx); slots[i].Err == nil {
				slots[i].Value, slots[i].Err = contain(ctx, i, f)
			}
			return nil
		})
	}

	_ = group.Wait() // no slot returns an error: each stores its own
	return slots
}

// contain calls f and turns a panic into an error: it must not end the host.
func contain[T any](
	ctx context.Context, i int, f func(ctx context.Context, i int) (T, error),
) (value T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("operation %d panicked: %v", i, r)
		}
	}()
	return f(ctx, i)
}
