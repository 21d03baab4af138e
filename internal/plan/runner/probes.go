package runner

import (
	"context"
	"sync"

	"github.com/rlmhq/rlm/tiers"
)

// Probes caches the results of Probe for all sessions that share it, so each tier is probed once.
// Only new Probes notice that a tier has become usable. The zero value is ready for use. It is safe
// for concurrent use and must not be copied.
type Probes struct {
	once sync.Once
	// lock holds one token and guards known. A caller whose context ends does not wait for another
	// caller's probe.
	lock  chan struct{}
	known map[string]error
}

// ask returns the reason why a tier is unusable, or nil if it is usable. It fails if ctx ends.
func (p *Probes) ask(
	ctx context.Context, name string, tier tiers.Tier,
) (unusable, err error) {
	p.once.Do(func() { p.lock, p.known = make(chan struct{}, 1), map[string]error{} })
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
		return nil, ctx.Err() // this reveals nothing about the tier
	}

	p.known[name] = unusable
	return unusable, nil
}
