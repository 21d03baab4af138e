// Package hostcall makes the host calls of a session. A host function is the caller's code: [Call]
// and [Go] contain its panics. [Gate] bounds the number of running calls and the bytes of their
// arguments and results. A guest can start calls much faster than the host answers them, and the
// host must not hold more data for the guest than the guest itself could.
package hostcall

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"

	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// Gate bounds host calls. It is safe for concurrent use.
type Gate struct {
	places, bytes *semaphore.Weighted
	most          int64 // bytes
}

// New returns a gate for complete limits: at most HostCallsAtOnce calls run concurrently, and all
// arguments and results together occupy at most Memory.
func New(limits tiers.Limits) *Gate {
	return &Gate{
		places: semaphore.NewWeighted(int64(limits.HostCallsAtOnce)),
		bytes:  semaphore.NewWeighted(limits.Memory), most: limits.Memory,
	}
}

// Hold counts the bytes of a call's arguments, from the request on, or of its result, until the
// guest has received it. If it succeeds, Free must be called afterwards.
func (g *Gate) Hold(bytes int) error {
	if g.bytes.TryAcquire(int64(bytes)) {
		return nil
	}
	return fmt.Errorf(
		"the arguments and results of the host calls in flight would take more than %s in total: "+
			"wait for some of the calls first",
		quantity.IBytes(g.most),
	)
}

// Free releases bytes counted by Hold.
func (g *Gate) Free(bytes int) { g.bytes.Release(int64(bytes)) }

// Enter waits for a place. The error is the context's. Without an error, Leave must be called when
// the host function has returned.
func (g *Gate) Enter(ctx context.Context) error { return g.places.Acquire(ctx, 1) }

// Leave passes the place to the next call.
func (g *Gate) Leave() { g.places.Release(1) }
