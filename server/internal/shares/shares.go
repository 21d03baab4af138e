// Package shares divides what the requests of a server use together among the tenants: places in
// a queue, connections, bytes in memory. A tenant gets more only while at least as much stays free
// as it has then. So one tenant alone gets half, two get a third each, and the next one finds a
// place.
package shares

import "sync"

// Pool is an amount that tenants share. It is safe for concurrent use.
type Pool struct {
	most, mostOfOne int64

	mu  sync.Mutex
	all int64
	of  map[string]int64 // by tenants
}

// New returns a pool of so many units.
func New(most int64) *Pool { return NewWithin(most, most) }

// NewWithin is New with a bound of what a tenant gets by Take.
func NewWithin(most, mostOfOne int64) *Pool {
	return &Pool{most: most, mostOfOne: mostOfOne, of: map[string]int64{}}
}

// Take gives a tenant n units, unless it is more than its share. Give gives them back.
func (p *Pool) Take(tenant string, n int64) bool {
	return p.take(tenant, n, func(free, mine int64) bool {
		return mine+n <= min(p.mostOfOne, free-n+1) // the last one, too
	})
}

// TakeFree is Take for a tenant that need not share: it may have all units.
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

// Give takes n units back from a tenant.
func (p *Pool) Give(tenant string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all -= n
	if p.of[tenant] -= n; p.of[tenant] == 0 {
		delete(p.of, tenant)
	}
}

// Load returns the units that all tenants have, and those of one.
func (p *Pool) Load(tenant string) (all, mine int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, p.of[tenant]
}
