package fanout

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/keep/runlog"
)

// Slot is the outcome of one of many operations.
type Slot[T any] struct {
	Value T
	Err   error
}

// Run calls f for 0 to n-1, at most limit at a time, and returns the outcomes in order. A failed
// slot does not stop the others. A panic of f is passed on to the caller, which may recover. When
// ctx ends, slots that have not started fail with its cause.
func Run[T any](
	ctx context.Context, n, limit int, f func(ctx context.Context, i int) (T, error),
) []Slot[T] {
	slots := make([]Slot[T], n)
	var group errgroup.Group
	var broken atomic.Pointer[string] // the first panic
	group.SetLimit(max(1, limit))
	slot := runlog.Slots(ctx, n)
	for i := range n {
		group.Go(func() error {
			ctx, ended := slot(i)
			defer ended()
			defer func() {
				if p := recover(); p != nil {
					text := fmt.Sprintf("%v\n%s", p, debug.Stack())
					broken.CompareAndSwap(nil, &text)
				}
			}()
			if slots[i].Err = context.Cause(ctx); slots[i].Err == nil {
				slots[i].Value, slots[i].Err = f(ctx, i)
			}
			return nil
		})
	}

	_ = group.Wait() // no slot returns an error: each stores its own
	if p := broken.Load(); p != nil {
		panic(*p)
	}
	return slots
}
