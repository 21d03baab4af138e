package calls

import (
	"context"
)

// Gate limits the number of concurrent holders.
type Gate chan struct{}

// NewGate returns a gate for n holders, at least one.
func NewGate(n int) Gate { return make(Gate, max(1, n)) }

// Enter waits for a place, or for the end of ctx. Leave returns the place.
func (g Gate) Enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave returns a place.
func (g Gate) Leave() { <-g }
