package workers

import (
	"context"

	"github.com/rlmhq/rlm/tiers"
)

// Replace puts the tier with a name into workers, and leaves the other tiers as they are. It
// returns the error of a tier that cannot live in workers here.
func Replace(ctx context.Context, all []tiers.Tier, name string, o Options) ([]tiers.Tier, error) {
	for i, tier := range all {
		if tier.Info().Name != name {
			continue
		}
		inWorkers, err := New(tier, o)
		if err == nil {
			err = inWorkers.Probe(ctx)
		}
		if err != nil {
			return nil, err
		}
		all[i] = inWorkers
	}
	return all, nil
}
