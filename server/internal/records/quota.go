package records

import (
	"context"
	"database/sql"
	"net/http"
	"sync"

	"github.com/rlmhq/rlm/internal/text/problem"
)

// Quota bounds the bytes of all files, sessions and conversations of a tenant, including data that
// is still arriving. A bound of 0 means no bound. It is safe for concurrent use.
type Quota struct {
	db *sql.DB

	mu      sync.Mutex
	tenants map[string]*arriving
}

// arriving counts the bytes that are arriving for a tenant.
type arriving struct {
	users int // guarded by Quota.mu

	mu    sync.Mutex // held while rows are added, so that every byte counts exactly once
	bytes int64
}

// NewQuota returns the quota of a database.
func NewQuota(db *sql.DB) *Quota { return &Quota{db: db, tenants: map[string]*arriving{}} }

// lock locks and returns the arriving bytes of a tenant.
func (q *Quota) lock(tenant string) (a *arriving, unlock func()) {
	q.mu.Lock()
	a = q.tenants[tenant]
	if a == nil {
		a = &arriving{}
		q.tenants[tenant] = a
	}

	a.users++
	q.mu.Unlock()

	a.mu.Lock()
	return a, func() {
		a.mu.Unlock()
		q.mu.Lock()
		defer q.mu.Unlock()
		if a.users--; a.users == 0 && a.bytes == 0 { // without users, a cannot change
			delete(q.tenants, tenant)
		}
	}
}

// check refuses more bytes that would exceed the bound most. The caller has locked the arriving
// bytes.
func (q *Quota) check(ctx context.Context, a *arriving, tenant string, most, more int64) error {
	if most == 0 {
		return nil
	}

	used, err := Used(ctx, q.db, tenant)
	if err == nil && used+a.bytes+more > most {
		err = problem.New(http.StatusRequestEntityTooLarge, "quota_used_up",
			"the key allows %d bytes for files, sessions and conversations, and %d are used: delete some",
			most, used+a.bytes)
	}
	return err
}

// Check refuses more bytes for a tenant if the sum would exceed most.
func (q *Quota) Check(ctx context.Context, tenant string, most, more int64) error {
	if most == 0 {
		return nil
	}
	a, unlock := q.lock(tenant)
	defer unlock()
	return q.check(ctx, a, tenant, most, more)
}

// Add calls commit, which adds rows for more bytes, unless the tenant would then exceed most.
func (q *Quota) Add(ctx context.Context, tenant string, most, more int64, commit func() error) error {
	if most == 0 {
		return commit()
	}
	a, unlock := q.lock(tenant)
	defer unlock()
	if err := q.check(ctx, a, tenant, most, more); err != nil {
		return err
	}
	return commit()
}

// Arrival is an arriving stream of unknown size for a tenant.
type Arrival struct {
	quota  *Quota
	tenant string
	most   int64
	bytes  int64 // set aside
}

// Arrive begins an arrival. Finish or Abort ends it.
func (q *Quota) Arrive(tenant string, most int64) *Arrival {
	return &Arrival{quota: q, tenant: tenant, most: most}
}

// arrivalStep is the number of bytes that are set aside in one step.
const arrivalStep = 1 << 20

// Grow makes sure that at least the given number of bytes is set aside. Close to the bound, it sets
// aside exactly this number.
func (a *Arrival) Grow(ctx context.Context, bytes int64) error {
	if a.most == 0 || bytes <= a.bytes {
		return nil
	}
	all, unlock := a.quota.lock(a.tenant)
	defer unlock()
	for _, goal := range []int64{bytes + arrivalStep, bytes} {
		err := a.quota.check(ctx, all, a.tenant, a.most, goal-a.bytes)
		if err == nil {
			all.bytes += goal - a.bytes
			a.bytes = goal
			return nil
		}
		if goal == bytes {
			return err
		}
	}
	return nil
}

// Finish calls commit, which adds a row for the arrived bytes.
func (a *Arrival) Finish(commit func() error) error {
	if a.most == 0 {
		return commit()
	}
	all, unlock := a.quota.lock(a.tenant)
	defer unlock()

	err := commit()
	all.bytes -= a.bytes
	a.bytes = 0
	return err
}

// Abort returns the bytes that were set aside.
func (a *Arrival) Abort() { _ = a.Finish(func() error { return nil }) }
