// Package shares divides the shared resources of a server among the tenants: places in a queue,
// connections, bytes in memory. A tenant gets more only while at least as much stays free as it
// would then have. So a single tenant gets half, two get a third each, and the next one finds a
// place.
package shares

import "sync"

// Pool is an amount that tenants share. It is safe for concurrent use.
type Pool struct {
	most, mostOfOne int64

	mu  sync.Mutex
	all int64
	of  map[string]int64 // by tenant
}

// New returns a pool of that many units.
func New(most int64) *Pool { return NewWithin(most, most) }

// NewWithin is New with a bound on what Take gives one tenant.
func NewWithin(most, mostOfOne int64) *Pool {
	return &Pool{most: most, mostOfOne: mostOfOne, of: map[string]int64{}}
}

// Take gives a tenant n units, unless that exceeds its share. Give returns them.
func (p *Pool) Take(tenant string, n int64) bool {
	return p.take(tenant, n, func(free, mine int64) bool {
		return mine+n <= min(p.mostOfOne, free-n+1) // even the last one
	})
}

// TakeFree is Take for a tenant that need not share: it may take all units.
func (p *Pool) TakeFree(tenant string, n int64) bool {
	return p.take(tenant, n, func(free, _ int64) bool { return n <= free })
}

// TakeAlways is Take without a bound.
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
