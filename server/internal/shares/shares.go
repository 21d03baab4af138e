// Package shares divides the shared resources of a server among its tenants: places in a queue,
// connections, bytes in memory. A tenant may take more only if at least as much stays free as the
// tenant would then have. So a single tenant gets half, two tenants get a third each, and there is
// always room for another tenant.
package shares

import "sync"

// Pool is an amount that tenants share. It is safe for concurrent use.
type Pool struct {
	most, mostOfOne int64

	mu  sync.Mutex
	all int64
	of  map[string]int64 // by tenant
}

// New returns a pool of most units.
func New(most int64) *Pool { return NewWithin(most, most) }

// NewWithin is like New, with a bound on how much Take gives one tenant.
func NewWithin(most, mostOfOne int64) *Pool {
	return &Pool{most: most, mostOfOne: mostOfOne, of: map[string]int64{}}
}

// Take gives a tenant n units, unless that exceeds its share. Give returns them.
func (p *Pool) Take(tenant string, n int64) bool {
	return p.take(tenant, n, func(free, mine int64) bool {
		return mine+n <= min(p.mostOfOne, free-n+1) // so that one tenant can take the last unit
	})
}

// TakeFree is like Take, for a tenant that need not share and may take all units.
func (p *Pool) TakeFree(tenant string, n int64) bool {
	return p.take(tenant, n, func(free, _ int64) bool { return n <= free })
}

// TakeAlways is like Take, without a bound.
func (p *Pool) TakeAlways(tenant string, n int64) bool {
	return p.take(tenant, n, func(_, _ int64) bool { return true })
}

func (p *Pool) take(tenant string, n int64, may func(free, mine int64) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !may(p.most-p.all, p.of[tenant]) {
		return false
	}

	p.all += n
	p.of[tenant] += n
	return true
}

// Give returns n units of a tenant.
func (p *Pool) Give(tenant string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all -= n
	if p.of[tenant] -= n; p.of[tenant] == 0 {
		delete(p.of, tenant)
	}
}

// Load returns the units that all tenants hold, and those of one tenant.
func (p *Pool) Load(tenant string) (all, mine int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, p.of[tenant]
}
