package repl

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Slot is the outcome of one of many.
type Slot[T any] struct {
	Value T
	Err   error
}

// FanOut calls f for 0 to n-1, at most limit at a time, and returns the outcomes
// in order. A failed slot ends no other; when ctx ends, what has not begun fails
// with its cause.
func FanOut[T any](ctx context.Context, n, limit int, f func(ctx context.Context, i int) (T, error)) []Slot[T] {
	slots := make([]Slot[T], n)
	var group errgroup.Group
	group.SetLimit(max(1, limit))
	for i := range n {
		group.Go(func() error {
			if slots[i].Err = context.Cause(ctx); slots[i].Err == nil {
				slots[i].Value, slots[i].Err = f(ctx, i)
			}
			return nil
		})
	}
	_ = group.Wait() // no slot returns an error: each keeps its own
	return slots
}

// Gate limits how many hold it at a time.
type Gate chan struct{}

// NewGate returns a gate for n.
func NewGate(n int) Gate { return make(Gate, max(1, n)) }

// Enter waits for a place, or for the end of ctx. Leave gives it back.
func (g Gate) Enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave gives a place back.
func (g Gate) Leave() { <-g }
