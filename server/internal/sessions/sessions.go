// Package sessions keeps the sessions of a server. A session belongs to a tenant and lasts until it
// is deleted. Its variables and contexts are in a folder, and its record is in a database row.
//
// A session that is in use is open in the engine. A resting session is saved; after a while, or
// when others need its place, only the saved state remains. The next request restores it, even in
// a later process.
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
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/tiers"
)

// Options configure a Manager.
type Options struct {
	Engine *rlm.Engine
	DB     *sql.DB
	// Contents store the sessions' variables and contexts; Quota bounds their size.
	Contents *contents.Contents
	Quota    *records.Quota
	// Terms returns the terms for the sessions of a profile.
	Terms func(profile string) (Terms, error)
	// AtMost is the maximum number of sessions; Open is that of sessions that are open at the same
	// time.
	AtMost, Open int
	// Inputs configure how contexts are read; MaxContext bounds one context, in bytes.
	Inputs     inputs.Options
	MaxContext int64
	Log        *slog.Logger
	// SaveAfter is how long a session rests before it is saved. Zero means 2 seconds.
	SaveAfter time.Duration
	// Ran, if set, is called with the status of each snippet. Unsavable, if set, is called after
	// each failed attempt to save a session.
	Ran       func(status string, elapsed time.Duration)
	Unsavable func(isDisk bool)
}

// Terms are the terms for the sessions of a profile. The name is never empty.
type Terms struct {
	Profile       string
	Limits        tiers.Limits
	Policy        rlm.Policy
	Deterministic bool
	// Durability is that of sessions that request none. Empty means DurabilityKept.
	Durability string
}

const (
	// closeAfter is how long a session rests before it is closed.
	closeAfter = 5 * time.Minute
	// loseAfter is how long a session that cannot be saved completely rests before it is closed.
	loseAfter = time.Hour
	// lookEvery is the interval between searches for resting sessions.
	lookEvery = time.Second
)

// Manager keeps sessions. It is safe for concurrent use.
type Manager struct {
	Options

	mu     sync.Mutex
	lives  map[string]*live // sessions in use or open, by ID
	open   int              // taken places for open sessions
	places map[string]int   // the same by tenant
	counts map[string]int   // sessions by key
	owned  map[string]int   // sessions by tenant
	total  int
	closed bool

	words, naming records.Beginnings // of sessions with an Idempotency-Key, or a name
	log           writer

	requests sync.WaitGroup
	holders  sync.WaitGroup // connections
	janitor  sync.WaitGroup
	life     context.Context //nolint:containedctx // the context of all of these; ends with Drain
	end      context.CancelCauseFunc
}

// live is a session that is in use or open in the engine.
type live struct {
	id, tenant string

	// The following fields are guarded by Manager.mu.
	isBusy    bool // a request uses it, or a connection holds it
	isHeld    bool
	isDeleted bool
	hasPlace  bool
	lastUse   time.Time
	cancel    context.CancelCauseFunc // cancels the request; nil for none
	// cancelRepeat cancels a repetition of the log, which continues without the client; nil if
	// there is none.
	cancelRepeat context.CancelCauseFunc

	// pinned means that the session cannot be saved completely, isUnsaved that it has changed since
	// it was saved.
	pinned, isUnsaved atomic.Bool

	// variables are the variables after the last snippet; nil means that the last saved list is
	// current.
	variables atomic.Pointer[[]tiers.Variable]

	using   sync.Mutex // held by the request or the janitor; guards the fields below
	session *rlm.Session
	// functions are the functions of the connection that holds the session.
	functions []rlm.Function
	enforced  []tiers.Enforcement // as last reported to the client
	record    Record
	isKept    bool          // see Manager.keeps
	log       logged        // empty if the session is saved
	changes   int           // uses that may have changed the session
	kept      int           // changes that are saved
	unsaved   time.Time     // when the first unsaved use began
	tried     int           // changes at the last save attempt, if a retry is pointless
	again     time.Time     // no attempt before this time
	savedAt   time.Time     // the end of the last attempt
	saveCost  time.Duration // the duration of the last attempt
	lost      *tiers.Loss   // the loss that no result has reported yet
}

// These are the reasons for which the manager ends a request.
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

// These functions return the paths of contents: see package contents.
func folder(id string) string             { return "sessions/" + id }
func statePath(id string) string          { return folder(id) + "/state" }
func contextPath(id string, i int) string { return folder(id) + "/contexts/" + strconv.Itoa(i) }

// Unsaved returns the number of open sessions with unsaved changes, and how many of these cannot be
// saved completely.
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

// Load returns the number of all sessions and of open ones.
func (m *Manager) Load() (all, open int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total, m.open
}

func errNotFound(id string) error { return problem.NotFound("session", id) }

// claim reserves a session of a tenant for a request until release is called. Until then, other
// requests for the session are refused. claim waits until the janitor has finished with the
// session.
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

// checkClaim returns the reason why a request may not claim the session, if any. The caller holds
// mu.
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

// use opens a session of a tenant if necessary, and calls f, which has exclusive use of it. Changes
// means that f may change the session. The error is for the client.
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
	var done *session.ChangeLog
	if err == nil {
		done = l.changeLog()
		err = f(done.With(ctx), l)
	}
	if failed := m.keep(ctx, l, done); failed != nil {
		err = failed
	}
	return m.asProblem(ctx, err)
}

// Interrupt stops the running request of a tenant's session. The variables stay.
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
	l := m.lives[id]
	if l == nil {
		return
	}
	for _, cancel := range []context.CancelCauseFunc{l.cancel, l.cancelRepeat} {
		if cancel != nil {
			cancel(why)
		}
	}
}

// Delete ends a session of a tenant, together with its running request, and deletes its data.
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
	l.using.Lock() // waits for the request that was stopped
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

// condemn makes sure that no more requests can claim the session. It counts the caller as a
// request, which the caller must end.
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

// close closes a session if it is open. The caller holds using.
func (m *Manager) close(l *live) error {
	if l.session == nil {
		return nil
	}
	err := l.session.Close()
	l.session = nil
	m.giveBack(l)
	return err
}

// Join counts a connection until leave is called. The connection must end when the context life
// ends.
func (m *Manager) Join() (life context.Context, leave func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, nil, errDraining()
	}
	m.holders.Add(1)
	return m.life, m.holders.Done, nil
}

// Drain refuses new requests, waits for active ones, and interrupts those that are still active
// when the context ends. Then it saves all sessions for the next process.
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
