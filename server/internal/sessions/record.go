package sessions

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/terms"
	"github.com/rlmhq/rlm/tiers"
)

// Spec is a session's original configuration, with later additions.
type Spec struct {
	Profile       string       `json:"profile"`
	Limits        terms.Limits `json:"limits,omitzero"`
	Policy        terms.Policy `json:"policy,omitzero"`
	Deterministic bool         `json:"deterministic,omitempty"`
	Out           bool         `json:"out,omitempty"`
	// Durability is DurabilityKept or DurabilityIdle. Empty means that of the profile.
	Durability string    `json:"durability,omitempty"`
	Contexts   []Context `json:"contexts,omitempty"`
}

// Context is a context of a session. Its content is a file in the session's folder.
type Context struct {
	// Variable is an additional name for snippets, or empty.
	Variable string `json:"variable,omitempty"`
	// Name is the name of the content, such as log.gz.
	Name    string `json:"name"`
	IsValue bool   `json:"is_value,omitempty"`
	Bytes   int64  `json:"bytes"`
}

// Standing is the last saved state of a session.
type Standing struct {
	// Snippets is the number of snippets that ran before it.
	Snippets  int              `json:"snippets"`
	Variables []tiers.Variable `json:"variables,omitempty"`
	// Left lists the values that could not be saved.
	Left []tiers.Left `json:"left,omitempty"`
	// Lost is any earlier loss that no result has reported yet.
	Lost *tiers.Loss `json:"lost,omitempty"`
	// Bytes is the size of the state.
	Bytes int64 `json:"bytes,omitempty"`
}

// Record is a session in the database.
type Record struct {
	ID, Tenant, Key, Name string
	Spec                  Spec
	Standing              Standing
	// Unsaved means that a snippet may have run after the session was saved. Logged means that the
	// log contains all changes since then that were reported to a client.
	Unsaved, Logged bool
	Created, Used   time.Time

	digest []byte
}

// These are the values of the column unsaved.
const (
	unsavedNo     = 0
	unsavedYes    = 1
	unsavedLogged = 2
)

// unsaved returns the value of the column.
func (r *Record) unsaved() int {
	switch {
	case !r.Unsaved:
		return unsavedNo
	case r.Logged:
		return unsavedLogged
	}
	return unsavedYes
}

const recordColumns = `id, tenant, key, name, spec, digest, standing, unsaved, created, used`

func scanRecord(row records.Row) (r Record, err error) {
	var spec, standing string
	var unsaved, created, used int64
	err = row.Scan(&r.ID, &r.Tenant, &r.Key, &r.Name, &spec, &r.digest, &standing, &unsaved, &created, &used)
	if err != nil {
		return r, err
	}
	r.Unsaved, r.Logged = unsaved != unsavedNo, unsaved == unsavedLogged

	r.Created, r.Used = records.ReadTime(created), records.ReadTime(used)
	err = errors.Join(json.Unmarshal([]byte(spec), &r.Spec), json.Unmarshal([]byte(standing), &r.Standing))
	if err != nil {
		err = fmt.Errorf("the record of session %s is damaged: %w", r.ID, err)
	}
	return r, err
}

// insert adds a record.
func (r *Record) insert(ctx context.Context, tx *sql.Tx, bytes int64) error {
	spec, err := json.Marshal(r.Spec)
	if err != nil {
		return err
	}
	standing, err := json.Marshal(r.Standing)
	if err != nil {
		return err
	}

	_, err = tx.ExecContext(ctx, `INSERT INTO sessions (`+recordColumns+`, bytes)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.Tenant, r.Key, r.Name, string(spec), r.digest, string(standing), r.unsaved(),
		records.Time(r.Created), records.Time(r.Used), bytes)
	return err
}

// Get returns the record of a tenant's session, as last saved.
func (m *Manager) Get(ctx context.Context, tenant, id string) (Record, error) {
	r, err := scanRecord(m.DB.QueryRowContext(ctx,
		`SELECT `+recordColumns+` FROM sessions WHERE tenant = ? AND id = ?`, tenant, id))
	if errors.Is(err, sql.ErrNoRows) {
		return r, records.NotFound(ctx, m.DB, "session", id)
	}
	return r, err
}

// named returns the session with the given name. Its ID is empty if there is none.
func (m *Manager) named(ctx context.Context, tenant, name string) (Record, error) {
	r, err := scanRecord(m.DB.QueryRowContext(ctx,
		`SELECT `+recordColumns+` FROM sessions WHERE tenant = ? AND name = ?`, tenant, name))
	if errors.Is(err, sql.ErrNoRows) {
		return Record{}, nil
	}
	return r, err
}

// List returns sessions of a tenant after the one with the given ID, latest first. A name, if set,
// selects a single session.
func (m *Manager) List(ctx context.Context, tenant, name, after string, limit int) (all []Record, err error) {
	where, args := []string{"tenant = ?"}, []any{tenant}
	if name != "" {
		where, args = append(where, "name = ?"), append(args, name)
	}
	if after != "" {
		last, err := m.Get(ctx, tenant, after)
		if err != nil {
			return nil, err
		}
		at := records.Time(last.Created)
		where = append(where, "(created < ? OR created = ? AND id > ?)")
		args = append(args, at, at, last.ID)
	}

	return records.List(ctx, m.DB, scanRecord, `SELECT `+recordColumns+` FROM sessions WHERE `+
		strings.Join(where, " AND ")+` ORDER BY created DESC, id LIMIT ?`, append(args, limit)...)
}

// These are the states of a session.
const (
	StatusRunning = "running" // a request uses it
	StatusOpen    = "open"
	StatusSaved   = "saved" // the next request opens it again
)

// Status returns the state of a session.
func (m *Manager) Status(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch l := m.lives[id]; {
	case l == nil:
		return StatusSaved
	case l.isBusy:
		return StatusRunning
	case l.hasPlace:
		return StatusOpen
	}

	return StatusSaved
}

// count counts the sessions of each key and of each tenant.
func (m *Manager) count(ctx context.Context) (err error) {
	rows, err := m.DB.QueryContext(ctx, `SELECT key, tenant, count(*) FROM sessions GROUP BY key, tenant`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()

	for rows.Next() {
		var key, tenant string
		var n int
		if err := rows.Scan(&key, &tenant, &n); err != nil {
			return err
		}
		m.counts[key] += n
		m.owned[tenant] += n
		m.total += n
	}
	return rows.Err()
}

// delete deletes a session and all its data, and reports whether it existed.
func (m *Manager) delete(ctx context.Context, id string) (was bool, err error) {
	err = m.Contents.Remove(ctx, folder(id), func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM session_log WHERE session = ?`, id); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE id = ?`, id)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		was = n > 0
		return err
	})
	return was, err
}

// setSpec changes the spec of a session; more is the growth of its folder, in bytes.
func setSpec(ctx context.Context, tx *sql.Tx, r *Record, more int64) error {
	spec, err := json.Marshal(r.Spec)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE sessions SET spec = ?, bytes = bytes + ? WHERE id = ?`,
		string(spec), more, r.ID)
	return err
}
