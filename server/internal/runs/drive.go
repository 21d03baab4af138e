package runs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/failures"
)

// stop ends a live run for a reason. Only the first reason is kept.
func (l *live) stop(why error) { l.cancel(why) }

// drive runs a live run from the queue to its end.
func (m *Manager) drive(l *live, turn *ticket, profile *Profile) {
	begun := time.Now()
	var outcome rlm.Outcome
	err := turn.enter(l.ctx)
	if err == nil {
		err = m.setStatus(l.ctx, l.record.ID, StatusRunning, "")
	}
	if err == nil {
		outcome, err = m.answer(l, profile)
	}

	m.conclude(l, outcome, err)
	if m.Ended != nil { // before a client can see the end
		m.Ended(profile.Name, l.record.Status, time.Since(begun))
	}
	m.keepEnd(l)
	turn.leave()
	l.cancel(nil)
	close(l.done)
}

// maxOwned is the longest time that another process may hold a run that begins.
const maxOwned = 5 * time.Second

// answer runs a task with the engine. If another process holds the run, such as rlm runs approve
// just after its decision, it waits for this process.
func (m *Manager) answer(l *live, profile *Profile) (outcome rlm.Outcome, err error) {
	for deadline := time.Now().Add(maxOwned); ; {
		outcome, err = m.tryAnswer(l, profile)
		var owned *store.OwnedError
		if !errors.As(err, &owned) || time.Now().After(deadline) {
			return outcome, err
		}

		select {
		case <-time.After(100 * time.Millisecond):
		case <-l.ctx.Done():
			return outcome, context.Cause(l.ctx)
		}
	}
}

func (m *Manager) tryAnswer(l *live, profile *Profile) (outcome rlm.Outcome, err error) {
	defer func() {
		if r := recover(); r != nil { // a panic in one run must not end the server
			m.Log.Error("a run panicked", "run", l.record.ID, "panic", r, "stack", string(debug.Stack()))
			err = errors.New("the run failed: the log of the server has the reason")
		}
	}()
	task, closeContexts, err := m.task(l, profile)
	if err != nil {
		return outcome, err
	}
	defer closeContexts()
	if profile.Observe != nil {
		progress, done, err := profile.Observe(l.ctx, task.Config.Progress)
		if err != nil {
			return outcome, err
		}
		task.Config.Progress = progress
		defer m.work.Go(done)
	}
	return m.Engine.Ask(l.ctx, task)
}

// task returns the engine's task for a run.
func (m *Manager) task(l *live, profile *Profile) (task rlm.Task, closeContexts func(), err error) {
	spec := &l.record.Spec
	task = profile.Task
	task.Name = l.record.ID
	task.Labels = map[string]string{"tenant": l.record.Tenant, "profile": profile.Name}

	cfg := &task.Config
	cfg.Question, cfg.Schema = spec.Question, spec.Schema
	cfg.System = joinTexts(cfg.System, spec.System)
	cfg.Budget = profile.budget(spec)
	cfg.Budget.USD = least(cfg.Budget.USD, l.usd)
	cfg.MaxTurns = int(least(int64(cfg.WithDefaults().MaxTurns), int64(spec.MaxTurns)))
	if spec.Loop {
		cfg.Bypass = -1
	}
	cfg.Progress = func(e ledger.Event) {
		if e.Kind == ledger.EventDelta {
			return
		}
		if err := l.events.add(e); err != nil {
			l.stop(err)
		}
	}

	var opened []*contents.Content
	closeContexts = func() {
		for _, c := range opened {
			_ = c.Close() // the content was only read
		}
	}
	for i, name := range spec.Contexts {
		content, err := m.Contents.Read(l.ctx, m.contextPath(l.record.ID, i))
		if err != nil {
			closeContexts()
			return task, nil, fmt.Errorf("cannot read context %q: %w", name, DamagedContext(err, name))
		}
		opened = append(opened, content)
		task.Contexts = append(task.Contexts, inputs.Stream(m.Inputs, name, content, m.MaxContext))
	}
	return task, closeContexts, nil
}

func joinTexts(a, b string) string {
	if a != "" && b != "" {
		return a + "\n\n" + b
	}
	return a + b
}

// conclude sets the status and outcome with which a run ended.
func (m *Manager) conclude(l *live, outcome rlm.Outcome, err error) {
	r := &l.record
	r.Outcome, r.Ended = outcome, time.Now().UTC()
	r.Status, r.Reason = string(outcome.Status), outcome.Reason
	switch cause := context.Cause(l.ctx); {
	case errors.Is(cause, errDrained):
		r.Status, r.Reason = StatusInterrupted, errDrained.Error()
	case errors.Is(cause, errCanceled):
		r.Status, r.Reason = string(ledger.StatusCanceled), errCanceled.Error()
	case err != nil:
		r.Status, r.Reason = string(ledger.StatusFailed), m.explain(r, err)
	}
}

// keepEnd records how a run ended, closes its events and charges its cost.
func (m *Manager) keepEnd(l *live) {
	ctx := context.WithoutCancel(l.ctx)
	r := &l.record
	spent := r.Outcome.Spent
	if known, failed := m.Engine.ShowRun(ctx, r.ID); failed == nil {
		spent = known.Spent // including the spending of earlier processes
	}
	failed := m.finish(ctx, r, spent)
	if err := errors.Join(l.events.close(), failed); err != nil {
		m.Log.Error("cannot keep the end of a run", "run", r.ID, "error", err)
	}

	if failed == nil {
		l.hold.Release()
	} else {
		l.hold.Owe(max(spent.USD-r.Charged.USD, 0)) // so that the key cannot spend it again
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lives, r.ID)
	if failed != nil {
		m.unkept = append(m.unkept, unkept{*r, spent, l.hold})
	}
}

// unkept is the end of a run that the database could not record.
type unkept struct {
	record Record
	spent  ledger.Spending
	hold   *access.Hold
}

// keepWithin is the time after which keepEnds postpones the remaining ends and costs.
const keepWithin = 5 * time.Second

// keepEnds records the ends of runs and the costs of direct answers that the database could not
// record earlier.
func (m *Manager) keepEnds(ctx context.Context) error {
	m.mu.Lock()
	left, owed := m.unkept, m.unpaid
	m.unkept, m.unpaid = nil, nil
	m.mu.Unlock()

	var errs []error
	begun := time.Now()
	isLate := func() bool { // another process may block the database
		return time.Since(begun) > keepWithin && errors.Join(errs...) != nil
	}
	left = slices.DeleteFunc(left, func(end unkept) bool {
		if isLate() {
			return false
		}
		err := m.finish(ctx, &end.record, end.spent)
		if err == nil {
			end.hold.Release()
		}
		errs = append(errs, err)
		return err == nil
	})
	owed = slices.DeleteFunc(owed, func(debt unpaid) bool {
		if isLate() {
			return false
		}
		err := debt.prepaid.Settle(ctx, debt.cost)
		errs = append(errs, err)
		return err == nil
	})

	m.mu.Lock()
	defer m.mu.Unlock()
	m.unkept, m.unpaid = append(m.unkept, left...), append(m.unpaid, owed...)
	return errors.Join(errs...)
}

// explain returns the reason for a failure, for the client. Only a setup error is about the
// request; other errors may contain details of this machine.
func (m *Manager) explain(r *Record, err error) string {
	var setup *rlm.SetupError
	if errors.As(err, &setup) {
		return err.Error()
	}
	m.Log.Warn("a run has failed", "run", r.ID, "error", err)
	if r.Reason != "" {
		return r.Reason
	}
	return err.Error()
}

// charge adds the cost of a run to the spending of its key.
func (m *Manager) charge(ctx context.Context, db access.Execer, r *Record, s ledger.Spending) error {
	if s == (ledger.Spending{}) {
		return nil
	}
	if m.Charged != nil {
		m.Charged(r.Spec.Profile, s)
	}
	return access.Charge(ctx, db, r.Key, r.Tenant, s)
}

func (m *Manager) setEnd(ctx context.Context, id, status, reason string) error {
	_, err := m.db.ExecContext(ctx, `UPDATE runs SET status = ?, reason = ? WHERE id = ?`, status, reason, id)
	return err
}

// Recover continues the runs that an earlier process left unfinished. Runs for which a client
// waited stay interrupted, because the client is gone.
func (m *Manager) Recover(ctx context.Context) error {
	left, err := m.query(ctx, `status IN (?, ?, ?) ORDER BY created`,
		StatusQueued, StatusRunning, StatusInterrupted)
	if err != nil {
		return err
	}

	for i := range left {
		if err := m.recover(ctx, &left[i]); err != nil {
			m.Log.Warn("a run stays interrupted", "run", left[i].ID, "error", err)
			err := m.setEnd(ctx, left[i].ID, StatusInterrupted, failures.Of(err).Detail)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Manager) recover(ctx context.Context, r *Record) error {
	if known, err := m.Engine.ShowRun(ctx, r.ID); err == nil && known.Spent != r.Charged {
		r.Reason, r.Status = errDrained.Error(), StatusInterrupted
		if err := m.finish(ctx, r, known.Spent); err != nil {
			return err
		}
		r.Charged = known.Spent
	}

	if !r.Background {
		return problem.New(0, "client_gone", "the server stopped while the client waited")
	}
	return m.resume(ctx, r, true)
}

// resume drives a run again, from its last committed turn. If isLeft is set, an earlier process
// left it unfinished.
func (m *Manager) resume(ctx context.Context, r *Record, isLeft bool) error {
	k, err := m.Keys.ByID(ctx, r.Key)
	if err != nil {
		return err
	}
	r.Status = StatusQueued
	return m.admit(ctx, k, *r, isLeft, func() error { return m.setStatus(ctx, r.ID, StatusQueued, "") })
}

// Waiting returns the calls of a tenant's run that wait for a decision.
func (m *Manager) Waiting(ctx context.Context, tenant, id string) ([]rlm.Approval, error) {
	r, err := m.Get(ctx, tenant, id)
	if err != nil || r.Status != string(ledger.StatusParked) {
		return nil, err
	}
	run, err := m.Engine.ShowRun(ctx, id)
	return run.Waiting, err
}

// Decide answers a waiting call, and continues the run when no other call waits.
func (m *Manager) Decide(ctx context.Context, tenant, id, approval string, d rlm.Decision) error {
	m.changing.Lock() // concurrent decisions would lock each other out of the run
	defer m.changing.Unlock()
	waiting, err := m.Waiting(ctx, tenant, id)
	if err != nil {
		return err
	}
	is := func(a rlm.Approval) bool { return a.ID == approval }
	if !slices.ContainsFunc(waiting, is) {
		return problem.NotFound("waiting call", approval)
	}
	if _, err := m.Engine.Decide(ctx, approval, d); err != nil {
		return problem.Bad("value", "cannot decide: %v", err)
	}

	if len(waiting) > 1 {
		return nil
	}
	r, err := m.Wait(ctx, tenant, id) // a run that is being parked may not have ended yet
	if err != nil {
		return err
	}
	return m.resume(ctx, &r, false)
}
