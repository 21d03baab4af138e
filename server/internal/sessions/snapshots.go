package sessions

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/tiers"
)

// Snapshot is a client's saved state of a session's variables.
type Snapshot struct {
	ID      string
	Bytes   int64
	Created time.Time
	// Left lists the values that the snapshot lacks. Only TakeSnapshot sets it.
	Left []tiers.Left
}

// maxSnapshots is the maximum number of snapshots per session.
const maxSnapshots = 100

var validSnapshot = lazyregexp.New(`^snap_[a-z0-9]{1,60}$`)

func snapshots(id string) string              { return folder(id) + "/snapshots" }
func snapshotPath(id, snapshot string) string { return snapshots(id) + "/" + snapshot }

// TakeSnapshot saves the variables of a session of the key's tenant.
func (m *Manager) TakeSnapshot(ctx context.Context, k access.Key, id string) (taken Snapshot, err error) {
	err = m.use(ctx, k.Tenant, id, false, func(ctx context.Context, l *live) error {
		known, err := m.listSnapshots(ctx, id)
		if err != nil {
			return err
		}
		if len(known) >= maxSnapshots {
			return problem.New(http.StatusConflict, "too_many_snapshots", "the session has %d snapshots: delete one",
				len(known))
		}

		taken = Snapshot{ID: runs.NewID("snap_"), Created: time.Now().UTC()}
		written, err := m.writeState(ctx, l.session, snapshotPath(id, taken.ID))
		if err != nil {
			return err
		}
		taken.Bytes, taken.Left = written.content.Bytes, written.left()
		err = m.Quota.Add(ctx, k.Tenant, k.Limits.Files, taken.Bytes, func() error {
			return m.Contents.Keep(ctx, []*contents.Incoming{written.content}, func(tx *sql.Tx) error {
				return addBytes(ctx, tx, id, taken.Bytes)
			})
		})
		if err != nil {
			m.Contents.Drop([]*contents.Incoming{written.content})
		}
		return err
	})
	return taken, err
}

func addBytes(ctx context.Context, tx *sql.Tx, id string, bytes int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE sessions SET bytes = bytes + ? WHERE id = ?`, bytes, id)
	return err
}

// Snapshots lists the snapshots of a session of a tenant, oldest first.
func (m *Manager) Snapshots(ctx context.Context, tenant, id string) ([]Snapshot, error) {
	if _, err := m.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	return m.listSnapshots(ctx, id)
}

func (m *Manager) listSnapshots(ctx context.Context, id string) (all []Snapshot, err error) {
	rows, err := records.Contents(ctx, m.DB, snapshots(id))
	for i := range rows {
		all = append(all, Snapshot{
			ID: path.Base(rows[i].Path), Bytes: rows[i].Bytes, Created: rows[i].Created,
		})
	}
	return all, err
}

// findSnapshot returns a snapshot of a session of a tenant.
func (m *Manager) findSnapshot(ctx context.Context, tenant, id, snapshot string) (found records.ContentRow, err error) {
	if _, err := m.Get(ctx, tenant, id); err != nil {
		return found, err
	}
	if !validSnapshot.MatchString(snapshot) {
		return found, problem.NotFound("snapshot", snapshot)
	}

	found, err = records.Content(ctx, m.DB, snapshotPath(id, snapshot))
	if errors.Is(err, sql.ErrNoRows) {
		err = records.NotFound(ctx, m.DB, "snapshot", snapshot)
	}
	return found, err
}

// OpenSnapshot returns the file of a snapshot of a session of a tenant.
func (m *Manager) OpenSnapshot(ctx context.Context, tenant, id, snapshot string) (*os.File, error) {
	if _, err := m.findSnapshot(ctx, tenant, id, snapshot); err != nil {
		return nil, err
	}
	file, err := m.Contents.File(ctx, snapshotPath(id, snapshot))
	return file, asDamagedSnapshot(err, snapshot)
}

// asDamagedSnapshot converts an error of a snapshot for the client.
func asDamagedSnapshot(err error, snapshot string) error {
	var damaged *contents.DamageError
	if errors.As(err, &damaged) {
		return problem.New(http.StatusGone, failures.Damaged,
			"the snapshot %s is damaged on the server's disk: %s: restore another one", snapshot, damaged.Problem)
	}
	return err
}

// DeleteSnapshot deletes a snapshot of a session of a tenant.
func (m *Manager) DeleteSnapshot(ctx context.Context, tenant, id, snapshot string) error {
	found, err := m.findSnapshot(ctx, tenant, id, snapshot)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return m.Contents.Remove(ctx, found.Path, func(tx *sql.Tx) error {
		var isThere bool
		row := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM contents WHERE path = ?)`, found.Path)
		err := row.Scan(&isThere)
		if err == nil && !isThere { // another request has just deleted it
			err = problem.NotFound("snapshot", snapshot)
		}
		return errors.Join(err, addBytes(ctx, tx, id, -max(found.Bytes, 0)))
	})
}

// Restore restores a session from one of its snapshots, even if its last saved state is damaged.
// The session must have the same contexts as when the snapshot was taken.
func (m *Manager) Restore(ctx context.Context, tenant, id, snapshot string) error {
	if _, err := m.findSnapshot(ctx, tenant, id, snapshot); err != nil {
		return err
	}
	return m.startOver(ctx, tenant, id, func(ctx context.Context, l *live, session *rlm.Session) error {
		err := m.restore(ctx, session, snapshotPath(id, snapshot))
		if err = asDamagedSnapshot(err, snapshot); err == nil {
			l.lost = nil
			return nil
		}
		var known *problem.Error
		if !isOurs(err) && !errors.As(err, &known) {
			err = problem.New(http.StatusConflict, "cannot_restore", "%v", err)
		}
		return err
	})
}
