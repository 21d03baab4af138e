package runs

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/records"
)

// Options configure a Manager.
type Options struct {
	Engine   *rlm.Engine // must have a Store
	Profiles []Profile
	DB       *sql.DB
	Keys     *access.Keys
	Meter    *access.Meter
	// Contents store the contexts and events of runs. Dir is their folder, the data folder.
	Contents *contents.Contents
	Dir      string
	// AtOnce is the maximum number of concurrent runs, and Queue that of waiting runs. The same
	// numbers apply separately to direct answers.
	AtOnce, Queue int
	// Inputs configure how contexts are read; MaxContext bounds one context, in bytes.
	Inputs     inputs.Options
	MaxContext int64
	Log        *slog.Logger
	// Charged, if set, is called with each charge.
	Charged func(profile string, s ledger.Spending)
	// Ended, if set, is called with the status of each run that ends, before a client can notice
	// the end.
	Ended func(profile, status string, elapsed time.Duration)
}

// Manager starts and keeps runs. It is safe for concurrent use.
type Manager struct {
	Options
	db       *sql.DB
	profiles map[string]*Profile

	runs, directs *lane

	mu     sync.Mutex
	closed error // the reason why no run may begin; nil while runs may begin
	lives  map[string]*live
	unkept []unkept // ends of runs that the database could not record yet
	unpaid []unpaid // costs of direct answers that the database could not record yet
	work   sync.WaitGroup
	words  records.Beginnings // runs with an Idempotency-Key

	changing sync.Mutex // held while an ended run is changed

	life context.Context //nolint:containedctx // the context of direct answers; ends with Drain
	kill context.CancelCauseFunc
}

// live is an active run.
type live struct {
	record Record // at the beginning
	events *eventLog
	usd    float64 // its budget; 0 means the profile's
	hold   *access.Hold
	ctx    context.Context //nolint:containedctx // ends with Cancel, and with the server
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// These are the reasons for which the manager ends a run.
var (
	errCanceled = errors.New("the client has canceled it")
	errDrained  = errors.New("the server stops")
)

// New returns a manager. Recover starts the runs that an earlier process left unfinished.
func New(o Options) *Manager {
	m := &Manager{
		Options: o, db: o.DB, profiles: map[string]*Profile{}, lives: map[string]*live{},
		runs: newLane("runs", o.AtOnce, o.Queue), directs: newLane("direct answers", o.AtOnce, o.Queue),
	}
	m.life, m.kill = context.WithCancelCause(context.Background())
	for i := range o.Profiles {
		m.profiles[o.Profiles[i].Name] = &o.Profiles[i]
	}
	return m
}

// NewID returns an unguessable ID with a prefix such as "run_".
func NewID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// IsID reports whether an ID is that of a run.
func IsID(id string) bool { return strings.HasPrefix(id, "run_") }

// folder returns the folder of a run, relative to the data folder.
func folder(id string) string { return "runs/" + id }

func (m *Manager) eventsPath(id string) string { return folder(id) + "/" + records.EventsFile }

func (m *Manager) eventsFile(id string) string {
	return filepath.Join(m.Dir, filepath.FromSlash(m.eventsPath(id)))
}

// Start begins a run of a key and returns its record. The error is for the client.
func (m *Manager) Start(ctx context.Context, k access.Key, r Request) (Record, error) {
	profile, err := m.Answering(r.Profile)
	if err != nil {
		return Record{}, err
	}
	if err := r.check(); err != nil {
		return Record{}, err
	}
	r.Profile = profile.Name
	leave, err := m.words.Enter(ctx, k.Tenant, r.Idempotency)
	if err != nil {
		return Record{}, err
	}
	defer leave()
	if known, err := m.repeated(ctx, k.Tenant, &r); err != nil || known != "" {
		if err != nil {
			return Record{}, err
		}
		return m.Get(ctx, k.Tenant, known)
	}

	record := Record{
		ID: NewID("run_"), Tenant: k.Tenant, Key: k.ID, Spec: r.Spec, Background: r.Background,
		Status: StatusQueued, Created: time.Now().UTC(),
	}
	err = m.admit(ctx, k, record, false, func() error { return m.save(ctx, &record, &r) })
	return record, err
}

// admit begins to drive a run; if isLeft is set, an earlier process left it unfinished. It first
// calls prepare, which creates the data of the run.
func (m *Manager) admit(
	ctx context.Context, k access.Key, record Record, isLeft bool, prepare func() error,
) error {
	profile, err := m.Answering(record.Spec.Profile)
	if err != nil {
		return err
	}
	turn, err := m.enlist(m.runs, k.Tenant, isLeft)
	if err != nil {
		return err
	}
	wants := profile.budget(&record.Spec).USD
	hold, err := m.Meter.Begin(ctx, &k, wants)
	if err != nil {
		turn.leave()
		return err
	}
	usd := hold.USD
	if usd != wants { // only the rest of the key's budget is available
		usd += m.kept(ctx, &record)
	}

	l, err := m.open(record, usd, prepare)
	if err != nil {
		hold.Release()
		turn.leave()
		return err
	}
	l.hold = hold
	go m.drive(l, turn, profile)
	return nil
}

// open makes and registers a live run.
func (m *Manager) open(record Record, usd float64, prepare func() error) (l *live, err error) {
	if err := prepare(); err != nil {
		return nil, err
	}
	l = &live{record: record, usd: usd, done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	if l.events, err = openEvents(m.eventsFile(record.ID)); err != nil {
		return nil, err
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lives[record.ID] != nil {
		busy := problem.New(http.StatusConflict, "running", "the run goes on already")
		return nil, errors.Join(busy, l.events.close())
	}
	m.lives[record.ID] = l
	return l, nil
}

// live returns an active run, or nil if there is none.
func (m *Manager) live(id string) *live {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lives[id]
}

// Cancel ends a run of a tenant. It does not change a run that has already ended.
func (m *Manager) Cancel(ctx context.Context, tenant, id string) error {
	r, err := m.Get(ctx, tenant, id)
	if err != nil {
		return err
	}
	l := m.live(id)
	if l == nil {
		if r.Status == string(ledger.StatusParked) || r.Status == StatusInterrupted {
			return m.setEnd(ctx, id, string(ledger.StatusCanceled), errCanceled.Error())
		}
		return nil
	}

	l.stop(errCanceled)
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Abandon cancels a run of a tenant whose last client has gone away. Another request with the same
// Idempotency-Key then begins a new run, because a client whose connection broke sends its request
// again.
func (m *Manager) Abandon(ctx context.Context, tenant, id string) error {
	_, err := m.db.ExecContext(ctx, `DELETE FROM idempotency WHERE tenant = ? AND run = ?`, tenant, id)
	return errors.Join(err, m.Cancel(ctx, tenant, id))
}

// Wait waits until a run of a tenant ends, and returns its record.
func (m *Manager) Wait(ctx context.Context, tenant, id string) (Record, error) {
	if _, err := m.Get(ctx, tenant, id); err != nil {
		return Record{}, err
	}

	if l := m.live(id); l != nil {
		select {
		case <-l.done:
		case <-ctx.Done():
			return Record{}, context.Cause(ctx)
		}
	}
	return m.Get(ctx, tenant, id)
}

// Follow calls take with the number and the JSON of each event of a tenant's run that follows the
// event with the given number, until the run ends. It calls idle whenever there are no more events
// yet.
func (m *Manager) Follow(
	ctx context.Context, tenant, id string, after int64,
	take func(n int64, event []byte) error, idle func() error,
) error {
	if _, err := m.Get(ctx, tenant, id); err != nil {
		return err
	}
	if l := m.live(id); l != nil {
		return l.events.follow(ctx, after, take, idle)
	}

	isKept, err := records.HasContents(ctx, m.db, m.eventsPath(id))
	if err != nil {
		return err
	}
	events, err := pastEvents(m.eventsFile(id), isKept)
	if err != nil {
		return err
	}
	return events.follow(ctx, after, take, idle)
}

// Drain refuses new runs, waits for active ones, and interrupts those that are still active when
// the context ends. Recover continues them in the next process.
func (m *Manager) Drain(ctx context.Context) {
	m.mu.Lock()
	m.closed = errDrained
	m.mu.Unlock()
	defer func() {
		if err := m.keepEnds(context.WithoutCancel(ctx)); err != nil {
			m.Log.Error("cannot keep the ends of runs", "error", err)
		}
	}()

	ended := make(chan struct{})
	go func() { m.work.Wait(); close(ended) }()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}

	m.mu.Lock()
	for _, l := range m.lives {
		l.stop(errDrained)
	}
	m.mu.Unlock()
	m.kill(errDrained)
	<-ended
}
