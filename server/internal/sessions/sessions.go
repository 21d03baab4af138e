// Package sessions keeps the sessions of a server. A session belongs to a tenant and lasts until
// it is deleted: its variables and contexts are in a folder, and a row of the database names it.
//
// A session that is in use is open in the engine. One that rests is saved; after a while, or when
// others need its place, it is only what was saved. The next request brings it back, also in a
// later process.
package sessions

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/tiers"
)

// Options configure a Manager.
type Options struct {
	Engine *rlm.Engine
	DB     *sql.DB
	// Contents have the sessions' variables and contexts, Quota bounds them.
	Contents *contents.Contents
	Quota    *records.Quota
	// Terms returns what the sessions of a profile may have.
	Terms func(profile string) (Terms, error)
	// AtMost bounds the sessions of the server, Open those that are open at the same time.
	AtMost, Open int
	// Inputs say how contexts are read, MaxContext bounds one of them, in bytes.
	Inputs     inputs.Options
	MaxContext int64
	Log        *slog.Logger
	// SaveAfter is how long a session rests before it is saved. Zero means 2 seconds.
	SaveAfter time.Duration
	// Ran, if set, is called with the status of each snippet, and Unsavable after each attempt to
	// save a session that has failed.
	Ran       func(status string, elapsed time.Duration)
	Unsavable func(isDisk bool)
}

// Terms are what the sessions of a profile may have. The name is never empty.
type Terms struct {
	Profile       string
	Limits        tiers.Limits
	Policy        rlm.Policy
	Deterministic bool
}

const (
	// closeAfter is how long a session rests before it is closed.
	closeAfter = 5 * time.Minute
	// loseAfter is how long a session rests before it is closed that cannot be saved whole.
	loseAfter = time.Hour
	// lookEvery is how often sessions that rest are looked for.
	lookEvery = time.Second
)

// Manager keeps sessions. It is safe for concurrent use.
type Manager struct {
	Options

	mu     sync.Mutex
	lives  map[string]*live // by ID: in use, or open
	open   int              // places for open sessions that are taken
	places map[string]int   // those by tenants
	counts map[string]int   // sessions by keys
	owned  map[string]int   // sessions by tenants
	total  int
	closed bool

	requests sync.WaitGroup
	holders  sync.WaitGroup // connections
	janitor  sync.WaitGroup
	life     context.Context //nolint:containedctx // of all of these, ends with Drain
	end      context.CancelCauseFunc
}

// live is a session that is in use, or open in the engine.
type live struct {
	id, tenant string

	// Guarded by Manager.mu.
	isBusy    bool // a request uses it, or a connection holds it
	isHeld    bool
	isDeleted bool
	hasPlace  bool
	lastUse   time.Time
	cancel    context.CancelCauseFunc // of the request, nil for none

	// pinned says that it cannot be saved whole, isUnsaved that it has changed since it was saved.
	pinned, isUnsaved atomic.Bool

	// variables are those after the last snippet, nil for those that were saved last.
	variables atomic.Pointer[[]tiers.Variable]

	using   sync.Mutex // held by the request, and by the janitor; guards what follows
	session *rlm.Session
	// functions are those of the connection that holds it.
	functions []rlm.Function
	record    Record
	changes   int           // uses that may have changed it
	kept      int           // changes that are saved
	unsaved   time.Time     // when the first of the others began
	tried     int           // changes at the last attempt to save it that another one would only repeat
	again     time.Time     // before it, there is no further attempt
	savedAt   time.Time     // the end of the last attempt
	saveCost  time.Duration // the time that it took
	lost      *results.Loss // what no result has said yet
}

// The reasons for which a request is ended from outside.
var (
	errInterrupted = errors.New("the client has interrupted it")
	errDeleted     = errors.New("the session was deleted")
	errStopping    = errors.New("the server stops")
)

// New returns a manager, which Drain ends.
func New(ctx context.Context, o Options) (*Manager, error) {
	o.SaveAfter = cmp.Or(o.SaveAfter, 2*time.Second)
	m := &Manager{
		Options: o, lives: map[string]*live{}, places: map[string]int{},
		counts: map[string]int{}, owned: map[string]int{},
	}
	if err := m.count(ctx); err != nil {
		return nil, err
	}
	m.life, m.end = context.WithCancelCause(context.Background())
	m.janitor.Go(m.lookAfter)
	return m, nil
}

// The paths of contents, see package contents.
func folder(id string) string             { return "sessions/" + id }
func statePath(id string) string          { return folder(id) + "/state" }
func contextPath(id string, i int) string { return folder(id) + "/contexts/" + strconv.Itoa(i) }

// Unsaved returns how many open sessions have changed since they were saved last, and how many of
// these cannot be saved whole.
func (m *Manager) Unsaved() (changed, pinned int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lives {
		if l.hasPlace && l.isUnsaved.Load() {
			changed++
		}
		if l.hasPlace && l.pinned.Load() {
			pinned++
		}
	}

	return changed, pinned
}

// Load says how many sessions there are, and how many of them are open.
func (m *Manager) Load() (all, open int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total, m.open
}

func errNotFound(id string) error { return problem.NotFound("session", id) }

// claim gives a session of a tenant to a request, until release is called. Another request of the
// session is refused in the meantime; the janitor is waited for.
func (m *Manager) claim(ctx context.Context, tenant, id string) (_ context.Context, l *live, err error) {
	if m.find(id) == nil {
		if _, err := m.Get(ctx, tenant, id); err != nil {
			return nil, nil, err
		}
	}

	m.mu.Lock()
	if l = m.lives[id]; l == nil {
		l = &live{id: id, tenant: tenant}
	}
	err = m.checkClaim(l, tenant)
	if err != nil {
		m.mu.Unlock()
		return nil, nil, err
	}
	m.lives[id], l.isBusy = l, true
	m.requests.Add(1)
	ctx, l.cancel = context.WithCancelCause(ctx)
	m.mu.Unlock()

	l.using.Lock()
	return ctx, l, nil
}

// checkClaim refuses a request. The caller holds mu.
func (m *Manager) checkClaim(l *live, tenant string) error {
	switch {
	case m.closed:
		return errDraining()
	case l.tenant != tenant || l.isDeleted:
		return errNotFound(l.id)
	case l.isBusy:
		return problem.Later(http.StatusConflict, "in_use", time.Second,
			"another request uses the session: wait for its answer, or interrupt it")
	}

	return nil
}

func errDraining() error {
	return problem.Later(http.StatusServiceUnavailable, "draining", 10*time.Second,
		"the server is stopping: try again")
}

func (m *Manager) find(id string) *live {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lives[id]
}

// release ends the claim of a request.
func (m *Manager) release(l *live) {
	isOpen := l.session != nil
	m.free(l)

	m.mu.Lock()
	defer m.mu.Unlock()
	l.isBusy, l.lastUse = false, time.Now()
	l.cancel(nil)
	l.cancel = nil
	if !isOpen && m.lives[l.id] == l && !l.isDeleted {
		delete(m.lives, l.id)
	}
	m.requests.Done()
}

// use calls f with an open session of a tenant, which belongs to this call until f returns. The
// error is for the client. Changes says that f may change the session.
func (m *Manager) use(
	ctx context.Context, tenant, id string, changes bool, f func(context.Context, *live) error,
) error {
	ctx, l, err := m.claim(ctx, tenant, id)
	if err != nil {
		return err
	}
	defer m.release(l)

	defer context.AfterFunc(m.life, func() { m.stop(id, errStopping) })()
	err = m.wake(ctx, l)
	if err == nil && changes {
		err = m.noteChange(ctx, l)
	}
	if err == nil {
		err = f(ctx, l)
	}
	return m.asProblem(ctx, err)
}

// Interrupt stops what a session of a tenant runs. Its variables stay.
func (m *Manager) Interrupt(ctx context.Context, tenant, id string) error {
	if _, err := m.Get(ctx, tenant, id); err != nil {
		return err
	}
	m.stop(id, errInterrupted)
	return nil
}

// stop ends the request that uses a session, if there is one.
func (m *Manager) stop(id string, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.lives[id]; l != nil && l.cancel != nil {
		l.cancel(why)
	}
}

// Delete ends a session of a tenant, and what it runs, and forgets it.
func (m *Manager) Delete(ctx context.Context, tenant, id string) error {
	r, err := m.Get(ctx, tenant, id)
	if err != nil {
		return err
	}
	l, err := m.condemn(tenant, id)
	if err != nil {
		return err
	}
	defer m.requests.Done()
	m.stop(id, errDeleted)
	l.using.Lock() // after the request that was stopped
	defer l.using.Unlock()
	err = m.close(l)
	switch gone, failed := m.delete(context.WithoutCancel(ctx), id); {
	case failed != nil:
		err = errors.Join(err, failed)
	case !gone:
		err = errNotFound(id) // another request has deleted it since Get
	default:
		m.unreserve(r.Key, r.Tenant)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lives, id)
	return err
}

// condemn makes sure that no further request gets the session. The caller ends the request that
// this counts.
func (m *Manager) condemn(tenant, id string) (*live, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lives[id]
	if l == nil {
		l = &live{id: id, tenant: tenant}
	}
	switch {
	case m.closed:
		return nil, errDraining()
	case l.isDeleted:
		return nil, errNotFound(id)
	}

	m.lives[id], l.isDeleted = l, true
	m.requests.Add(1)
	return l, nil
}

// close closes a session, if it is open. The caller holds using.
func (m *Manager) close(l *live) error {
	if l.session == nil {
		return nil
	}
	err := l.session.Close()
	l.session = nil
	m.giveBack(l)
	return err
}

// Join counts a connection, which has to end with life, until leave is called.
func (m *Manager) Join() (life context.Context, leave func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, nil, errDraining()
	}
	m.holders.Add(1)
	return m.life, m.holders.Done, nil
}

// Drain lets no further request begin, waits for those that go on, and interrupts the ones that
// have not ended when the context does. Then it saves all sessions, for the next process.
func (m *Manager) Drain(ctx context.Context) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.closed = true
	m.mu.Unlock()

	ended := make(chan struct{})
	go func() { m.requests.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	m.end(errStopping)
	<-ended
	m.holders.Wait()
	m.janitor.Wait()

	var saves sync.WaitGroup
	for _, list := range m.listOpen() {
		saves.Go(func() {
			for _, l := range list {
				m.putAway(l)
			}
		})
	}
	saves.Wait()
}
