package workers

import (
	"context"

	"github.com/rlmhq/rlm/tiers"
)

// Start puts a tier into workers. It returns an error if the tier cannot live in workers here.
func Start(ctx context.Context, tier tiers.Tier, o Options) (Tier, error) {
	inWorkers, err := New(tier, o)
	if err == nil {
		err = inWorkers.Probe(ctx)
	}
	return inWorkers, err
}
