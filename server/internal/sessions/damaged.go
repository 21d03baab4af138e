package sessions

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/tiers"
)

// newLoss returns a loss that does not name its snippets.
func newLoss(reason string) *tiers.Loss {
	return &tiers.Loss{Snippets: []int{}, Reason: reason}
}

// restoreState loads the last saved variables into a new session. Lost is the loss that no result
// has reported yet, including that of these variables, if any.
func (m *Manager) restoreState(
	ctx context.Context, session *rlm.Session, r *Record,
) (lost *tiers.Loss, err error) {
	err = m.restore(ctx, session, statePath(r.ID))
	var damaged *contents.DamageError
	isDamaged := errors.As(err, &damaged)
	switch {
	case err == nil:
		return r.Standing.Lost, nil
	case isDamaged && !damaged.IsThere() && r.Standing.Bytes == 0:
		return r.Standing.Lost, nil // the session was never saved
	case isDamaged && !damaged.IsThere():
		m.Log.Error("the saved variables of a session are missing", "session", r.ID)
		return results.JoinLosses(r.Standing.Lost, newLoss("The saved variables of the session are missing on the "+
			"server's disk; it began again without them.")), nil
	case isOurs(err):
		return nil, err
	}

	m.Log.Error("the saved variables of a session are damaged", "session", r.ID, "error", err)
	return nil, problem.New(http.StatusConflict, failures.Damaged, "the saved variables of the session are damaged: "+
		"%v: %sbegin again without them: POST /v1/sessions/%s/reset", reasonOf(err), m.adviseSnapshot(ctx, r.ID), r.ID)
}

// reasonOf returns the reason why a state cannot be read.
func reasonOf(err error) string {
	var damaged *contents.DamageError
	if errors.As(err, &damaged) {
		return damaged.Problem
	}
	return err.Error()
}

// adviseSnapshot returns advice to restore the last snapshot of a session, if there is one.
func (m *Manager) adviseSnapshot(ctx context.Context, id string) string {
	all, err := m.listSnapshots(ctx, id)
	if err != nil || len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("restore a snapshot: POST /v1/sessions/%s/snapshots/%s/restore, or ", id, all[len(all)-1].ID)
}

// restore loads the variables from a content into a new session.
func (m *Manager) restore(ctx context.Context, session *rlm.Session, path string) error {
	content, err := m.Contents.Read(ctx, path)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = session.Restore(ctx, content)
	if err != nil && !isOurs(err) {
		if _, damaged := io.Copy(io.Discard, content); damaged != nil { // up to the digest
			return damaged
		}
	}
	return err
}

// startOver replaces the open session, if any, with a new one that load fills instead of the last
// saved state. The error is for the client.
func (m *Manager) startOver(
	ctx context.Context, tenant, id string, load func(context.Context, *live, *rlm.Session) error,
) error {
	ctx, l, err := m.claim(ctx, tenant, id)
	if err != nil {
		return err
	}
	defer m.release(l)
	defer context.AfterFunc(m.life, func() { m.stop(id, errStopping) })()

	isOpen := l.session != nil
	if !isOpen {
		if l.record, err = m.Get(ctx, tenant, id); err == nil {
			l.isUnsaved.Store(l.record.Unsaved)
			err = m.takePlace(l)
		}
	}
	if err == nil {
		l.isKept = m.keeps(&l.record)
		err = m.replaceSession(ctx, l, load)
		if err != nil && !isOpen {
			m.giveBack(l)
		}
	}
	if err == nil && l.isKept {
		err = m.saveInstead(context.WithoutCancel(ctx), l, "it began again")
	}
	return m.asProblem(ctx, err)
}

// replaceSession replaces the open session with a new one. The caller holds using.
func (m *Manager) replaceSession(
	ctx context.Context, l *live, load func(context.Context, *live, *rlm.Session) error,
) error {
	session, err := m.openSession(ctx, &l.record, l.functions)
	if err != nil {
		return err
	}
	if err = load(ctx, l, session); err == nil {
		err = m.noteChange(ctx, l)
	}
	if err != nil {
		return errors.Join(err, session.Close())
	}

	old := l.session
	l.session = session
	if old != nil {
		if err := old.Close(); err != nil {
			m.Log.Warn("cannot close a session", "session", l.id, "error", err)
		}
	}
	return m.listVariables(ctx, l)
}

// Reset restarts a session without its variables. The contexts and snapshots stay.
func (m *Manager) Reset(ctx context.Context, tenant, id string) error {
	return m.startOver(ctx, tenant, id, func(ctx context.Context, l *live, _ *rlm.Session) error {
		lost := newLoss("The session began again without its variables, because a client asked for it.")
		standing := Standing{Lost: lost}
		err := m.Contents.Remove(ctx, statePath(id), func(tx *sql.Tx) error {
			return setStanding(ctx, tx, id, standing, -l.record.Standing.Bytes)
		})
		if err == nil {
			l.record.Standing, l.record.Unsaved, l.lost, l.kept = standing, false, lost, l.changes
			l.log = logged{}
		}
		return err
	})
}

// asDamagedContext converts an error of a session's context for the client.
func asDamagedContext(err error, r *Record, i int) error {
	var damaged *contents.DamageError
	if errors.As(err, &damaged) {
		return problem.New(http.StatusGone, failures.Damaged, "the context %q of the session is damaged on the "+
			"server's disk: %s: send the same content again: PUT /v1/sessions/%s/contexts/%d",
			r.Spec.Contexts[i].Name, damaged.Problem, r.ID, i)
	}
	return fmt.Errorf("cannot read context %q: %w", r.Spec.Contexts[i].Name, err)
}

// asDamagedSession returns the client's error if a session cannot be opened because of a damaged
// context, and nil for any other error.
func asDamagedSession(err error, r *Record) error {
	var damaged *contents.DamageError
	if !errors.As(err, &damaged) {
		return nil
	}
	for i := range r.Spec.Contexts {
		if damaged.Path == contextPath(r.ID, i) {
			return asDamagedContext(err, r, i)
		}
	}
	return err
}

// MendContext replaces the damaged content of a session's context with an identical copy. The error
// is for the client.
func (m *Manager) MendContext(ctx context.Context, k access.Key, id string, i int, c *Content) error {
	ctx, l, err := m.claim(ctx, k.Tenant, id)
	if err != nil {
		return err
	}
	defer m.release(l)
	r, err := m.Get(ctx, k.Tenant, id)
	if err != nil {
		return err
	}

	if i < 0 || i >= len(r.Spec.Contexts) {
		return problem.New(http.StatusNotFound, "not_found", "the session has %d contexts", len(r.Spec.Contexts))
	}

	row, err := records.Content(ctx, m.DB, contextPath(id, i))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	sent, err := c.Write(ctx, m.Contents, contextPath(id, i))
	if err != nil {
		return err
	}

	if len(row.Digest) == 0 || !bytes.Equal(sent.Digest, row.Digest) {
		m.Contents.Drop([]*contents.Incoming{sent})
		return problem.New(http.StatusConflict, "other_content",
			"this is not the content of context %q, whose SHA-256 is %x: send the same bytes, or make a new session",
			r.Spec.Contexts[i].Name, row.Digest)
	}

	return m.Contents.Keep(ctx, []*contents.Incoming{sent}, func(tx *sql.Tx) error {
		return records.RemoveLost(ctx, tx, sent.Path)
	})
}
