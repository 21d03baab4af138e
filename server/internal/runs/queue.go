package runs

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/fairqueue"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/shares"
)

// lane contains places for running work, and a queue of waiting work. Runs and MCP snippets share
// one lane. Direct answers have a separate one, so that a short answer never waits for a run.
type lane struct {
	what    string // the kind of work, for display
	places  int
	queue   *fairqueue.Queue // the work that is next in its tenant's line
	waiting *shares.Pool

	// The following fields are guarded by the manager.
	running int
	tenants map[string]*lineOfTenant
}

// lineOfTenant limits the running work of a tenant to the tenant's places.
type lineOfTenant struct {
	queue   *fairqueue.Queue
	tickets int
}

func newLane(what string, places, queue int) *lane {
	return &lane{
		what: what, places: places, queue: fairqueue.New(places, math.MaxInt), waiting: shares.New(int64(queue)),
		tenants: map[string]*lineOfTenant{},
	}
}

// ticket is a tenant's right to run work when it is the work's turn.
type ticket struct {
	manager *Manager
	lane    *lane
	tenant  string
	own     *lineOfTenant

	// The following fields are guarded by the manager.
	isQueued, isRunning, isOver bool
}

// enlist gives a tenant a ticket, or refuses immediately if the queue has no room, or none for this
// tenant. Work that an earlier process left unfinished is never refused. Call leave to end the
// ticket.
func (m *Manager) enlist(l *lane, tenant string, isLeft bool) (*ticket, error) {
	t := &ticket{manager: m, lane: l, tenant: tenant}

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed != nil {
		return nil, problem.Later(http.StatusServiceUnavailable, "draining", 10*time.Second,
			"the server is stopping: try again")
	}
	t.join()
	if !t.begin(isLeft) {
		t.leaveLine()
		all, mine := l.waiting.Load(tenant)
		return nil, problem.Later(http.StatusServiceUnavailable, "queue_full", 2*time.Second,
			"%d %s go on and %d wait, %d of them of this tenant: try again", l.running, l.what, all, mine)
	}
	m.work.Add(1)
	return t, nil
}

// join joins the tenant's line. The caller holds mu.
func (t *ticket) join() {
	l := t.lane
	if t.own = l.tenants[t.tenant]; t.own == nil {
		t.own = &lineOfTenant{queue: fairqueue.New(access.Share(t.tenant, l.places), math.MaxInt)}
		l.tenants[t.tenant] = t.own
	}
	t.own.tickets++
}

// leaveLine reverses join. The caller holds mu.
func (t *ticket) leaveLine() {
	if t.own.tickets--; t.own.tickets == 0 {
		delete(t.lane.tenants, t.tenant)
	}
}

// begin takes a place or, if none is free, room in the queue. It reports whether there was either.
// The caller holds mu.
func (t *ticket) begin(isLeft bool) bool {
	l := t.lane
	now, cancel := context.WithCancel(context.Background())
	cancel() // so that takePlace does not wait
	if t.takePlace(now) == nil {
		t.isRunning = true
		l.running++
		return true
	}

	take := l.waiting.Take
	switch {
	case isLeft:
		take = l.waiting.TakeAlways
	case access.IsAlone(t.tenant):
		take = l.waiting.TakeFree
	}
	t.isQueued = take(t.tenant, 1)
	return t.isQueued
}

// enter waits for the ticket's turn. Tenants take turns.
func (t *ticket) enter(ctx context.Context) error {
	if t.isRunning { // only the holder of the ticket changes it
		return nil
	}
	if err := t.takePlace(ctx); err != nil {
		return err
	}

	t.manager.mu.Lock()
	defer t.manager.mu.Unlock()
	t.leaveQueue()
	t.isRunning = true
	t.lane.running++
	return nil
}

// takePlace waits for a place of the tenant, and then for one of the lane.
func (t *ticket) takePlace(ctx context.Context) error {
	if err := t.own.queue.Enter(ctx, t.tenant); err != nil {
		return err
	}
	err := t.lane.queue.Enter(ctx, t.tenant)
	if err != nil {
		t.own.queue.Leave()
	}
	return err
}

// leaveQueue frees the ticket's room in the queue. The caller holds mu.
func (t *ticket) leaveQueue() {
	if t.isQueued {
		t.isQueued = false
		t.lane.waiting.Give(t.tenant, 1)
	}
}

// leave ends a ticket. A second call does nothing.
func (t *ticket) leave() {
	m := t.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.isOver {
		return
	}

	t.isOver = true
	t.leaveQueue()
	if t.isRunning {
		t.lane.running--
		t.lane.queue.Leave()
		t.own.queue.Leave()
	}
	t.leaveLine()
	m.work.Done()
}

// Load returns the numbers of running and waiting runs and direct answers.
func (m *Manager) Load() (running, waiting int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range []*lane{m.runs, m.directs} {
		all, _ := l.waiting.Load("")
		running, waiting = running+l.running, waiting+int(all)
	}
	return running, waiting
}
