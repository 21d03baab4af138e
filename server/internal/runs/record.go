package runs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/records"
)

// Statuses of runs, in addition to those of package ledger.
const (
	StatusQueued      = "queued"
	StatusRunning     = "running"
	StatusInterrupted = "interrupted" // the server ended before the run
)

// Spec describes a requested run.
type Spec struct {
	Profile  string          `json:"profile"`
	Question string          `json:"question"`
	System   string          `json:"system,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"`
	// Contexts are the names of the contexts, whose contents are in the run's folder.
	Contexts []string `json:"contexts,omitempty"`
	// Budget limits the run in addition to its profile.
	Budget ledger.Budget `json:"budget"`
	// MaxTurns bounds the turns of the root; 0 means the profile's bound.
	MaxTurns int `json:"max_turns,omitempty"`
	// Loop makes the loop answer even if the contexts are small.
	Loop bool `json:"loop,omitempty"`
	// Parent is the run whose turns a fork shares, up to ParentTurn. Those turns cost ParentUSD.
	Parent     string  `json:"parent,omitempty"`
	ParentTurn int     `json:"parent_turn,omitempty"`
	ParentUSD  float64 `json:"parent_usd,omitempty"`
}

// Record is a server's record of a run.
type Record struct {
	ID     string
	Tenant string
	Key    string
	Spec   Spec
	// Background means that the run continues without a client, and after a restart of the server.
	Background bool
	Status     string
	Reason     string
	Outcome    rlm.Outcome // set if the run has ended
	Charged    ledger.Spending
	Created    time.Time
	Ended      time.Time
	size       int // size of the strings in the database, in bytes
}

// IsOver reports whether the run has ended, either for good or until a decision.
func (r *Record) IsOver() bool {
	return r.Status != StatusQueued && r.Status != StatusRunning
}

const runColumns = `id, tenant, key, spec, background, status, reason, outcome, charged, created, ended`

func scanRecord(row records.Row) (r Record, err error) {
	var spec, outcome, charged string
	var created, ended int64
	err = row.Scan(&r.ID, &r.Tenant, &r.Key, &spec, &r.Background, &r.Status, &r.Reason, &outcome,
		&charged, &created, &ended)
	if err != nil {
		return r, err
	}

	r.Created, r.Ended = records.ReadTime(created), records.ReadTime(ended)
	r.size = len(spec) + len(outcome) + len(r.Reason)
	for _, field := range []struct {
		text string
		into any
	}{{spec, &r.Spec}, {outcome, &r.Outcome}, {charged, &r.Charged}} {
		if field.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(field.text), field.into); err != nil {
			return r, fmt.Errorf("the record of run %s is damaged: %w", r.ID, err)
		}
	}
	return r, nil
}

// insert adds a record.
func (r *Record) insert(ctx context.Context, tx *sql.Tx) error {
	spec, err := json.Marshal(r.Spec)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO runs
		(id, tenant, key, spec, question, background, status, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.Tenant, r.Key, string(spec), r.Spec.Question, r.Background, r.Status, records.Time(r.Created))
	return err
}

// setStatus changes the status of an active run.
func (m *Manager) setStatus(ctx context.Context, id, status, reason string) error {
	_, err := m.db.ExecContext(ctx, `UPDATE runs SET status = ?, reason = ?, ended = 0 WHERE id = ?`,
		status, reason, id)
	return err
}

// finish records how a run ended, and charges its cost since the last charge.
func (m *Manager) finish(ctx context.Context, r *Record, spent ledger.Spending) error {
	outcome, err := json.Marshal(r.Outcome)
	if err != nil {
		return err
	}
	charged, err := json.Marshal(spent)
	if err != nil {
		return err
	}

	return records.Within(ctx, m.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`UPDATE runs SET status = ?, reason = ?, outcome = ?, charged = ?, ended = ? WHERE id = ?`,
			r.Status, r.Reason, string(outcome), string(charged), records.Time(r.Ended), r.ID)
		if err != nil {
			return err
		}
		return m.charge(ctx, tx, r, access.Subtract(spent, r.Charged))
	})
}

// Get returns a run of a tenant.
func (m *Manager) Get(ctx context.Context, tenant, id string) (Record, error) {
	r, err := scanRecord(m.db.QueryRowContext(ctx,
		`SELECT `+runColumns+` FROM runs WHERE tenant = ? AND id = ?`, tenant, id))
	if errors.Is(err, sql.ErrNoRows) {
		return r, records.NotFound(ctx, m.db, "run", id)
	}
	return r, err
}

// Filter selects runs of a tenant. A zero field matches all.
type Filter struct {
	Status, Text string
	Since        time.Time
	// After is the ID of the last run of the previous page.
	After string
	Limit int
}

// maxPage bounds the strings in the runs that List returns, in bytes. List always returns at least
// one run.
const maxPage = 16 << 20

// List returns runs of a tenant, latest first. More means that there are further runs.
func (m *Manager) List(ctx context.Context, tenant string, f Filter) (all []Record, more bool, err error) {
	where, args := []string{"tenant = ?"}, []any{tenant}
	add := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	if f.Status != "" {
		add("status = ?", f.Status)
	}
	if f.Text != "" {
		add("instr(lower(question), lower(?)) > 0", f.Text)
	}
	if !f.Since.IsZero() {
		add("created >= ?", records.Time(f.Since))
	}
	if f.After != "" {
		last, err := m.Get(ctx, tenant, f.After)
		if err != nil {
			return nil, false, err
		}
		at := records.Time(last.Created)
		add("(created < ? OR created = ? AND id > ?)", at, at, last.ID)
	}

	rows, err := m.db.QueryContext(ctx, `SELECT `+runColumns+` FROM runs WHERE `+strings.Join(where, " AND ")+
		` ORDER BY created DESC, id LIMIT ?`, append(args, f.Limit+1)...)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for size := 0; rows.Next(); {
		one, err := scanRecord(rows)
		if err != nil {
			return nil, false, err
		}
		if size += one.size; len(all) == f.Limit || len(all) > 0 && size > maxPage {
			return all, true, nil
		}
		all = append(all, one)
	}
	return all, false, rows.Err()
}

func (m *Manager) query(ctx context.Context, where string, args ...any) ([]Record, error) {
	return records.List(ctx, m.db, scanRecord, `SELECT `+runColumns+` FROM runs WHERE `+where, args...)
}
