package runs

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/records"
)

// Delete deletes a run of a tenant and all its data. An active run ends first.
func (m *Manager) Delete(ctx context.Context, tenant, id string) error {
	if err := m.Cancel(ctx, tenant, id); err != nil {
		return err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	if m.live(id) != nil {
		return problem.New(http.StatusConflict, "running", "the run goes on again: cancel it first")
	}
	return m.remove(ctx, id)
}

// remove deletes a run's data, and its record last, so that a failed removal can be repeated. The
// cost of the run stays in the spending of its key.
func (m *Manager) remove(ctx context.Context, id string) error {
	if err := m.removeRunLog(ctx, id); err != nil {
		return err
	}
	return m.Contents.Remove(ctx, folder(id), func(tx *sql.Tx) error {
		for _, statement := range []string{
			`DELETE FROM responses WHERE run = ?`, `DELETE FROM idempotency WHERE run = ?`,
			`DELETE FROM runs WHERE id = ?`,
		} {
			if _, err := tx.ExecContext(ctx, statement, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeRunLog deletes the log of a run.
func (m *Manager) removeRunLog(ctx context.Context, id string) error {
	err := m.Engine.RemoveRun(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // the run may never have begun
		return busy(err)
	}
	return nil
}

// expiredAtOnce is the number of runs that Expire reads with one query.
const expiredAtOnce = 100

// Expire deletes the runs that ended before the given time, and the direct answers and
// conversations that are older. Runs that wait for a decision stay.
func (m *Manager) Expire(ctx context.Context, before time.Time) error {
	for {
		old, err := m.query(ctx, `ended > 0 AND ended < ? AND status NOT IN (?, ?, ?) LIMIT ?`,
			records.Time(before), StatusQueued, StatusRunning, string(ledger.StatusParked), expiredAtOnce)
		if err != nil {
			return err
		}
		for i := range old {
			if err := m.expire(ctx, old[i].ID, before); err != nil {
				return err
			}
		}
		if len(old) < expiredAtOnce {
			break
		}
	}

	for _, old := range []string{
		`DELETE FROM responses WHERE run = '' AND created < ?`,
		`DELETE FROM idempotency WHERE (run LIKE 'resp!_%' ESCAPE '!' OR run LIKE 'chatcmpl-%') AND created < ?`,
		`DELETE FROM conversations WHERE used < ?`,
		`DELETE FROM conversation_entries WHERE conversation NOT IN (SELECT id FROM conversations) AND created < ?`,
	} {
		if _, err := m.db.ExecContext(ctx, old, records.Time(before)); err != nil {
			return err
		}
	}
	return nil
}

// expire deletes a run, unless it is active again.
func (m *Manager) expire(ctx context.Context, id string, before time.Time) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	var isOld bool
	err := m.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND ended > 0 AND ended < ?)`,
		id, records.Time(before)).Scan(&isOld)
	if err != nil || !isOld {
		return err
	}
	m.Log.Info("a run expires", "run", id)
	return m.remove(ctx, id)
}
