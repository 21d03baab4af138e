//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/snippet/labels"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// tier is a tier whose sandboxes are in workers.
type tier struct {
	pool     *pool
	packages packages
}

// New returns a tier like inner, whose sandboxes are in workers. It does not start a worker yet:
// see Warm. Each worker creates the tier with inner's name and the default options, except for
// Options.Engine. The new tier owns inner.
func New(inner tiers.Tier, o Options) (Tier, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if o.Memory == 0 {
		most := machineMemory()
		o.Memory = most - most/4
	}
	t := &tier{pool: newPool(inner, o)}
	if t.MostMemory() < leastMemory {
		t.pool.end()
		return nil, fmt.Errorf("all workers together may use %s of memory, too little for a session: give them more",
			quantity.IBytes(o.Memory))
	}
	return t, nil
}

// MostMemory returns the highest memory limit that a session can have, in bytes.
func (t *tier) MostMemory() int64 { return mostLimit(t.pool.memory.share - baseMemory) }

// Info returns inner's description, because a worker is only a second wall around the tier.
func (t *tier) Info() tiers.Info {
	info := t.pool.inner.Info()
	info.Version += ", in workers"
	return info
}

// Probe reports whether inner works and this machine supports the jail.
func (t *tier) Probe(ctx context.Context) error {
	if err := t.pool.inner.Probe(ctx); err != nil {
		return err
	}
	o, report := t.pool.options, jail.Probe(ctx)
	switch {
	case report.Class == "" || report.Class == jail.Nested && !o.AllowNested:
		return fmt.Errorf("workers need a jail, which this machine does not offer: %s",
			strings.Join(report.Advice, "; "))
	case report.CgroupVersion == 0 && !o.AllowSampled:
		return fmt.Errorf("workers need a cgroup that bounds their memory: %s; or accept sampled "+
			"memory with --allow-sampled", strings.Join(report.Advice, "; "))
	}

	return nil
}

// Warm starts a worker.
func (t *tier) Warm(ctx context.Context) error {
	t.pool.mu.Lock()
	isWarm := len(t.pool.workers)+t.pool.starting > 0 || t.pool.closed
	if !isWarm {
		t.pool.starting++
	}
	t.pool.mu.Unlock()
	if isWarm {
		return nil
	}

	return t.pool.startOne(ctx)
}

// Open starts a sandbox in a worker.
func (t *tier) Open(ctx context.Context, cfg tiers.Config) (tiers.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(cfg.Mounts) > 0 {
		return nil, &tiers.RejectedError{
			Tier: t.Info().Name, Missing: "mounts", Effects: tiers.EffectsNeverRan,
			Reason: "it shows no files of the host",
		}
	}

	if err := cfg.Limits.Validate(); err != nil {
		return nil, err
	}

	s := &sandbox{pool: t.pool, tier: t, cfg: cfg, limits: cfg.Limits.WithDefaults()}
	s.limits.Memory = min(s.limits.Memory, t.MostMemory())
	if !t.pool.options.ShareWorkers {
		s.tenant = labels.Tenant(labels.WithTenant(context.Background(), cfg.Labels))
	}
	if err := s.open(ctx, nil); err != nil {
		return nil, err
	}
	return s, nil
}

// Stats counts workers and sessions.
func (t *tier) Stats() Stats { return t.pool.stats() }

// Close ends the workers. Close all sandboxes first.
func (t *tier) Close() error {
	return errors.Join(t.pool.close(), t.packages.close(), t.pool.inner.Close())
}
