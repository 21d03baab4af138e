package workers

import (
	"context"

	"github.com/rlmhq/rlm/tiers"
)

// Start makes a tier whose sandboxes run in worker processes. It returns an error if this machine
// cannot run the tier in workers.
func Start(ctx context.Context, tier tiers.Tier, o Options) (Tier, error) {
	inWorkers, err := New(tier, o)
	if err == nil {
		err = inWorkers.Probe(ctx)
	}
	return inWorkers, err
}
