// Package inflight bounds the host calls that are under way: how many the host
// makes at the same time, and how many bytes of arguments it holds for those that
// were asked for and have not ended. Every end of the host that takes calls has a
// gate: each sandbox, and the router for calls that outlive their sandbox.
package inflight

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/semaphore"

	"github.com/rlmhq/rlm/tiers"
)

// Gate is what calls pass. It may be used by many goroutines.
type Gate struct {
	places, bytes *semaphore.Weighted
	most          int64
}

// New returns a gate for complete limits: HostCallsAtOnce calls run at a time, and
// the arguments of all take no more than Memory, which is what the guest could
// hold of them itself.
func New(limits tiers.Limits) *Gate {
	return &Gate{
		places: semaphore.NewWeighted(int64(limits.HostCallsAtOnce)),
		bytes:  semaphore.NewWeighted(limits.Memory), most: limits.Memory,
	}
}

// Hold counts the arguments of a call from when it is asked for, in bytes. Unless
// there is an error, Free must be called once nobody holds them any more.
func (g *Gate) Hold(bytes int) error {
	if g.bytes.TryAcquire(int64(bytes)) {
		return nil
	}
	return fmt.Errorf("the arguments of the host calls under way would take more than %s together: wait for some of the calls first",
		humanize.IBytes(uint64(g.most)))
}

// Free takes back what Hold has counted.
func (g *Gate) Free(bytes int) { g.bytes.Release(int64(bytes)) }

// Enter waits until the call may be made. The error is the context's; without one,
// Leave must be called when the host function has returned, cancelled or not.
func (g *Gate) Enter(ctx context.Context) error { return g.places.Acquire(ctx, 1) }

// Leave gives the place to the next call.
func (g *Gate) Leave() { g.places.Release(1) }
