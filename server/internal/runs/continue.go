package runs

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
)

// Continuation describes how a run continues.
type Continuation struct {
	// Turn is the last turn to keep. Nil keeps all.
	Turn *int
	// Fork makes a new run from the kept turns. Otherwise, the run itself continues.
	Fork bool
	// Question and Profile are for a fork; empty means unchanged.
	Question, Profile string
	// Budget and MaxTurns, if set, replace the earlier ones. The spending of the kept turns counts
	// against the budget.
	Budget   *ledger.Budget
	MaxTurns int
	// Idempotency is the client's Idempotency-Key, for a fork.
	Idempotency string
}

// change returns the spec with the changes of the continuation.
func (c *Continuation) change(s Spec) (Spec, error) {
	if c.Question != "" {
		s.Question = c.Question
	}
	if c.Profile != "" {
		s.Profile = c.Profile
	}
	if c.Budget != nil {
		s.Budget = *c.Budget
	}
	if c.MaxTurns != 0 {
		s.MaxTurns = c.MaxTurns
	}
	return s, (&Request{Spec: s}).check()
}

// Continue continues a run of the key's tenant after a turn, or forks it there. The error is for
// the client.
func (m *Manager) Continue(ctx context.Context, k access.Key, id string, c Continuation) (Record, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	r, err := m.Get(ctx, k.Tenant, id)
	if err != nil {
		return r, err
	}
	known, err := m.Engine.ShowRun(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // a run may have no turns
		return r, err
	}

	if c.Turn != nil && (*c.Turn < 0 || *c.Turn > known.Turns) {
		return r, problem.Bad("turn",
			"the last turn of the run is %d: give it, an earlier one, or 0 for none", known.Turns)
	}
	if c.Fork {
		return m.fork(ctx, k, &r, &known, &c)
	}
	return m.goOn(ctx, k, r, &known, &c)
}

// goOn continues a run that has ended.
func (m *Manager) goOn(
	ctx context.Context, k access.Key, r Record, known *rlm.StoredRun, c *Continuation,
) (Record, error) {
	switch {
	case m.live(r.ID) != nil:
		return r, problem.New(http.StatusConflict, "running", "the run goes on: cancel it first")
	case c.Question != "" || c.Profile != "":
		return r, problem.Bad("fork", "a run keeps its question and profile: set fork to make a new run")
	case c.Turn == nil && len(r.Outcome.Answer) > 0:
		return r, problem.New(http.StatusConflict, "answered",
			"the run has its answer: give the turn after which it goes on, or set fork")
	case c.Turn == nil && len(known.Waiting) > 0:
		return r, problem.New(http.StatusConflict, "waiting",
			"calls of the run wait for a decision: decide on them, or give the turn after which it goes on")
	}

	var err error
	if r.Spec, err = c.change(r.Spec); err != nil {
		return r, err
	}
	r.Key, r.Background, r.Status, r.Reason, r.Outcome = k.ID, true, StatusQueued, "", rlm.Outcome{}
	err = m.admit(ctx, k, r, false, func() error {
		if c.Turn != nil && known.Name != "" {
			if err := m.Engine.RewindRun(ctx, r.ID, *c.Turn); err != nil {
				return busy(err)
			}
		}
		return m.beginAgain(ctx, &r)
	})
	if err != nil {
		return r, err
	}
	return m.Get(ctx, k.Tenant, r.ID)
}

// busy returns an error for the client if another process works on a run.
func busy(err error) error {
	var owned *store.OwnedError
	if errors.As(err, &owned) {
		return problem.Later(http.StatusConflict, "in_use", time.Second, "another process works on it: try again")
	}
	return err
}

// beginAgain records how a run continues.
func (m *Manager) beginAgain(ctx context.Context, r *Record) error {
	spec, err := json.Marshal(r.Spec)
	if err != nil {
		return err
	}
	_, err = m.db.ExecContext(ctx, `UPDATE runs
		SET key = ?, spec = ?, background = TRUE, status = ?, reason = '', outcome = '', ended = 0 WHERE id = ?`,
		r.Key, string(spec), r.Status, r.ID)
	return err
}

// fork makes a new run from the first turns of another one.
func (m *Manager) fork(
	ctx context.Context, k access.Key, parent *Record, known *rlm.StoredRun, c *Continuation,
) (Record, error) {
	turn := known.Turns
	if c.Turn != nil {
		turn = *c.Turn
	}
	if turn < 1 {
		return Record{}, problem.Bad("turn", "a fork needs a turn, and the last one of the run is %d: start a new run",
			known.Turns)
	}
	spec, err := c.change(parent.Spec)
	if err != nil {
		return Record{}, err
	}

	spec.Parent, spec.ParentTurn = parent.ID, turn
	spec.ParentUSD = parent.Spec.ParentUSD + costUntil(known, turn)
	r := Request{Spec: spec, Background: true, Idempotency: c.Idempotency}
	for i, name := range spec.Contexts {
		r.Contents = append(r.Contents, Content{Name: name, Path: m.contextPath(parent.ID, i)})
	}
	return m.Start(ctx, k, r)
}

// branch makes the run log of a fork.
func (m *Manager) branch(ctx context.Context, r *Record) error {
	spec := &r.Spec
	fork := rlm.StoredRun{Name: r.ID, Question: spec.Question}
	return m.Engine.ForkRun(ctx, spec.Parent, spec.ParentTurn, fork)
}

// costUntil returns the cost of a run's turns, up to a turn.
func costUntil(known *rlm.StoredRun, turn int) (usd float64) {
	for _, t := range known.History {
		if t.Turn <= turn {
			usd += t.Spent.USD
		}
	}
	return usd
}

// kept returns the cost of the turns after which a run continues, which counts against its budget.
func (m *Manager) kept(ctx context.Context, r *Record) float64 {
	known, err := m.Engine.ShowRun(ctx, r.ID)
	if err != nil {
		return r.Spec.ParentUSD // the run has no turns
	}
	return r.Spec.ParentUSD + costUntil(&known, math.MaxInt)
}

// contextPath returns the content path of a run's context.
func (m *Manager) contextPath(id string, i int) string {
	return folder(id) + "/contexts/" + strconv.Itoa(i)
}

// Wake continues parked runs for which another process, such as rlm runs approve, has decided.
// First it records the ends of runs that could not be recorded earlier.
func (m *Manager) Wake(ctx context.Context) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	if err := m.keepEnds(ctx); err != nil {
		return err
	}
	parked, err := m.query(ctx, `status = ?`, string(ledger.StatusParked))
	if err != nil || len(parked) == 0 {
		return err
	}
	waiting, err := m.Engine.Runs(ctx, rlm.RunFilter{Status: string(ledger.StatusParked)})
	if err != nil {
		return err
	}

	waits := map[string]bool{}
	for i := range waiting {
		waits[waiting[i].Name] = true
	}
	for i := range parked {
		r := &parked[i]
		if waits[r.ID] || m.live(r.ID) != nil {
			continue
		}
		// A run that cannot begin now is tried again later; a run that can never begin reports the
		// reason.
		err := m.resume(ctx, r, false)
		if failed := failures.Of(err); err != nil && failed.RetryAfter == 0 {
			m.Log.Warn("a run stays interrupted", "run", r.ID, "error", err)
			if err := m.setEnd(ctx, r.ID, StatusInterrupted, failed.Detail); err != nil {
				return err
			}
		}
	}
	return nil
}
