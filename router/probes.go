package router

import (
	"context"

	"github.com/rlmhq/rlm/tiers"
)

// Probes remembers what tiers answered to Probe, for all the sessions that share
// it: a tier is asked once. A tier that becomes usable later is seen by new
// Probes only. It is safe for concurrent use.
type Probes struct {
	// lock holds one token. It guards known, and a caller whose context ends need
	// not wait for the probe of another.
	lock  chan struct{}
	known map[string]error
}

// NewProbes returns a memory that knows no answer yet.
func NewProbes() *Probes {
	return &Probes{lock: make(chan struct{}, 1), known: map[string]error{}}
}

// ask returns why a tier is unusable, nil if it is usable. It fails if ctx ends.
func (p *Probes) ask(ctx context.Context, name string, tier tiers.Tier) (unusable, err error) {
	select {
	case p.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.lock }()
	unusable, known := p.known[name]
	if known {
		return unusable, nil
	}
	unusable = tier.Probe(ctx)
	if unusable != nil && ctx.Err() != nil {
		return nil, ctx.Err() // it says nothing about the tier
	}
	p.known[name] = unusable
	return unusable, nil
}
