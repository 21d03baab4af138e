package sessions

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/lazyregexp"
	"github.com/rlmhq/rlm/internal/serve/access"
	"github.com/rlmhq/rlm/internal/serve/problem"
	"github.com/rlmhq/rlm/internal/serve/runs"
	"github.com/rlmhq/rlm/tiers"
)

// Snapshot is a state of a session's variables that the client keeps.
type Snapshot struct {
	ID      string
	Bytes   int64
	Created time.Time
	// Left are values that are not in it. Only TakeSnapshot knows them.
	Left []tiers.Left
}

// maxSnapshots bounds the snapshots of a session.
const maxSnapshots = 100

var validSnapshot = lazyregexp.New(`^snap_[a-z0-9]{1,60}$`)

func (m *Manager) snapshots(id string) string { return filepath.Join(m.folder(id), "snapshots") }

// TakeSnapshot keeps the variables of a session of the key's tenant.
func (m *Manager) TakeSnapshot(ctx context.Context, k access.Key, id string) (taken Snapshot, err error) {
	err = m.use(ctx, k.Tenant, id, false, func(ctx context.Context, l *live) error {
		known, err := m.listSnapshots(id)
		if err != nil {
			return err
		}
		if len(known) >= maxSnapshots {
			return problem.New(http.StatusConflict, "too_many_snapshots", "the session has %d snapshots: delete one",
				len(known))
		}
		if err := os.MkdirAll(m.snapshots(id), 0o700); err != nil {
			return err
		}

		taken = Snapshot{ID: runs.NewID("snap_"), Created: time.Now().UTC()}
		path := filepath.Join(m.snapshots(id), taken.ID)
		written, err := writeSnapshot(ctx, l.session, path)
		if err != nil {
			return err
		}
		taken.Bytes, taken.Left = written.bytes, written.left()
		err = m.checkQuota(ctx, k.Tenant, k.Limits.Files, taken.Bytes)
		if err == nil {
			err = m.addBytes(ctx, id, taken.Bytes)
		}
		if err != nil {
			return errors.Join(err, os.Remove(path))
		}
		return nil
	})
	return taken, err
}

func (m *Manager) addBytes(ctx context.Context, id string, bytes int64) error {
	_, err := m.DB.ExecContext(ctx, `UPDATE sessions SET bytes = bytes + ? WHERE id = ?`, bytes, id)
	return err
}

// Snapshots lists the snapshots of a session of a tenant, the oldest first.
func (m *Manager) Snapshots(ctx context.Context, tenant, id string) ([]Snapshot, error) {
	if _, err := m.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	return m.listSnapshots(id)
}

func (m *Manager) listSnapshots(id string) (all []Snapshot, err error) {
	entries, err := os.ReadDir(m.snapshots(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !validSnapshot.MatchString(entry.Name()) {
			continue // it was deleted just now, or is not whole yet
		}
		all = append(all, Snapshot{ID: entry.Name(), Bytes: info.Size(), Created: info.ModTime().UTC()})
	}
	slices.SortFunc(all, func(a, b Snapshot) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// snapshotFile returns the file of a snapshot that is there.
func (m *Manager) snapshotFile(id, snapshot string) (string, fs.FileInfo, error) {
	if !validSnapshot.MatchString(snapshot) {
		return "", nil, problem.NotFound("snapshot", snapshot)
	}

	path := filepath.Join(m.snapshots(id), snapshot)
	info, err := os.Stat(path)
	return path, info, asMissing(err, snapshot)
}

// OpenSnapshot returns the file of a snapshot of a session of a tenant.
func (m *Manager) OpenSnapshot(ctx context.Context, tenant, id, snapshot string) (*os.File, error) {
	if _, err := m.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	path, _, err := m.snapshotFile(id, snapshot)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	return file, asMissing(err, snapshot)
}

// asMissing returns the error for a snapshot that another request has deleted just now.
func asMissing(err error, snapshot string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return problem.NotFound("snapshot", snapshot)
	}
	return err
}

// DeleteSnapshot deletes a snapshot of a session of a tenant.
func (m *Manager) DeleteSnapshot(ctx context.Context, tenant, id, snapshot string) error {
	if _, err := m.Get(ctx, tenant, id); err != nil {
		return err
	}
	path, info, err := m.snapshotFile(id, snapshot)
	if err != nil {
		return err
	}

	if err := os.Remove(path); err != nil {
		return asMissing(err, snapshot)
	}
	return m.addBytes(context.WithoutCancel(ctx), id, -info.Size())
}

// Restore brings a session back to one of its snapshots. It needs the contexts of that time.
func (m *Manager) Restore(ctx context.Context, tenant, id, snapshot string) error {
	return m.use(ctx, tenant, id, true, func(ctx context.Context, l *live) error {
		path, _, err := m.snapshotFile(id, snapshot)
		if err != nil {
			return err
		}
		session, err := m.openSession(ctx, &l.record, l.functions)
		if err != nil {
			return err
		}
		if err := restore(ctx, session, path); err != nil {
			err = errors.Join(err, session.Close())
			if !isOurs(err) {
				err = problem.New(http.StatusConflict, "cannot_restore", "%v", err)
			}
			return err
		}

		old := l.session
		l.session, l.lost = session, nil
		if err := old.Close(); err != nil {
			m.Log.Warn("cannot close a session", "session", id, "error", err)
		}
		return m.listVariables(ctx, l)
	})
}
