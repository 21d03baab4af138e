package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/texts"
)

// Create implements [store.Store].
func (f *Store) Create(ctx context.Context, log store.Log) error {
	return f.write(ctx, func(c *conn) error { return create(c, log) })
}

func create(c *conn, log store.Log) error {
	if err := log.Check(); err != nil {
		return err
	}
	if len(log.Spec) > store.MaxSpec {
		return fmt.Errorf("the beginning of %s has %d bytes, more than %d", log.ID, len(log.Spec), store.MaxSpec)
	}
	if log.Created.IsZero() {
		log.Created = now()
	}

	err := c.do(`INSERT INTO logs (kind, name, title, spec, parent, parent_turn, created, updated, status, turn,
		reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(log.Kind), log.Name, texts.Truncate(log.Title, store.MaxTitle), notNil(log.Spec), log.Parent,
		log.ParentTurn, log.Created.UnixNano(), now().UnixNano(), texts.Truncate(log.Status, store.MaxTitle),
		log.Turn, texts.Truncate(log.Reason, store.MaxTitle))
	if errors.Is(err, sqlite3.CONSTRAINT) {
		return fmt.Errorf("%s: %w", log.ID, store.ErrExists)
	}
	return err
}

// notNil returns bytes that the database does not treat as NULL.
func notNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

const logColumns = `kind, name, title, spec, parent, parent_turn, created, updated, status, turn, reason,
	calls, input_tokens, output_tokens, usd, unpriced, tool_calls, epoch`

func scanLog(row *sqlite3.Stmt) store.Log {
	return store.Log{
		ID:    store.ID{Kind: store.Kind(row.ColumnText(0)), Name: row.ColumnText(1)},
		Title: row.ColumnText(2), Spec: row.ColumnBlob(3, nil),
		Parent: row.ColumnText(4), ParentTurn: row.ColumnInt(5),
		Created: time.Unix(0, row.ColumnInt64(6)), Updated: time.Unix(0, row.ColumnInt64(7)),
		State: store.State{Status: row.ColumnText(8), Turn: row.ColumnInt(9), Reason: row.ColumnText(10)},
		Spent: scanCost(row, 11), Epoch: row.ColumnInt64(17),
	}
}

func scanCost(row *sqlite3.Stmt, at int) store.Cost {
	return store.Cost{
		Calls: row.ColumnInt64(at), InputTokens: row.ColumnInt64(at + 1), OutputTokens: row.ColumnInt64(at + 2),
		USD: row.ColumnFloat(at + 3), Unpriced: row.ColumnInt64(at + 4), ToolCalls: row.ColumnInt64(at + 5),
	}
}

// Log implements [store.Store].
func (f *Store) Log(ctx context.Context, id store.ID) (log store.Log, err error) {
	if err := errors.Join(ctx.Err(), id.Check()); err != nil {
		return log, err
	}

	found := false
	err = f.read(func(c *conn) error {
		return c.query("SELECT "+logColumns+" FROM logs WHERE kind = ? AND name = ?",
			[]any{string(id.Kind), id.Name}, func(row *sqlite3.Stmt) error {
				log, found = scanLog(row), true
				return nil
			})
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", id, store.ErrNotFound)
	}
	return log, err
}

// Logs implements [store.Store].
func (f *Store) Logs(ctx context.Context, filter store.Filter) ([]store.Log, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	limit := filter.Limit
	if limit <= 0 {
		limit = -1 // all, in SQLite
	}
	since := int64(0)
	if !filter.Since.IsZero() {
		since = filter.Since.UnixNano()
	}
	escaped := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(filter.Text)

	var logs []store.Log
	err := f.read(func(c *conn) error {
		return c.query("SELECT "+logColumns+` FROM logs WHERE (?1 = '' OR kind = ?1)
			AND (?2 = '' OR status = ?2) AND usd >= ?3 AND updated >= ?4
			AND (?5 = '%%' OR name LIKE ?5 ESCAPE '\' OR title LIKE ?5 ESCAPE '\')
			ORDER BY updated DESC, id DESC LIMIT ?6`,
			[]any{string(filter.Kind), filter.Status, filter.MinUSD, since, "%" + escaped + "%", limit},
			func(row *sqlite3.Stmt) error {
				logs = append(logs, scanLog(row))
				return nil
			})
	})
	return logs, err
}

// SetState implements [store.Store].
func (f *Store) SetState(ctx context.Context, lease store.Lease, state store.State, entries ...store.Entry) error {
	for i := range entries {
		if err := f.setAside(&entries[i]); err != nil {
			return err
		}
	}
	return f.write(ctx, func(c *conn) error {
		if len(entries) > 0 {
			if err := f.append(c, lease, entries); err != nil {
				return err
			}
		}
		log, err := checkLease(c, lease)
		if err != nil {
			return err
		}
		return c.do("UPDATE logs SET status = ?, turn = ?, reason = ?, updated = ? WHERE id = ?",
			texts.Truncate(state.Status, store.MaxTitle), state.Turn, texts.Truncate(state.Reason, store.MaxTitle),
			now().UnixNano(), log)
	})
}

// Cut implements [store.Store].
func (f *Store) Cut(ctx context.Context, lease store.Lease, turn int) error {
	return f.write(ctx, func(c *conn) error {
		log, err := checkLease(c, lease)
		if err != nil {
			return err
		}

		if err := c.do("DELETE FROM entries WHERE log = ? AND turn > ?", log, turn); err != nil {
			return err
		}
		return c.do("UPDATE logs SET status = '', reason = '', turn = min(turn, ?), updated = ? WHERE id = ?",
			turn, now().UnixNano(), log)
	})
}

// Copy implements [store.Store].
func (f *Store) Copy(ctx context.Context, from store.ID, turn int, to store.Log) error {
	if err := from.Check(); err != nil {
		return err
	}
	to.Parent, to.ParentTurn, to.Turn = from.Name, turn, turn
	return f.write(ctx, func(c *conn) error {
		source, err := findLog(c, from)
		if err != nil {
			return err
		}

		if err := create(c, to); err != nil {
			return err
		}
		target, err := findLog(c, to.ID)
		if err != nil {
			return err
		}
		return c.do(`INSERT INTO entries (log, turn, kind, key, digest, data, sum,
			calls, input_tokens, output_tokens, usd, unpriced, tool_calls)
			SELECT ?, turn, kind, key, digest, data, sum, 0, 0, 0, 0, 0, 0 FROM entries
			WHERE log = ? AND turn <= ? ORDER BY seq`, target, source, turn)
	})
}

// Remove implements [store.Store].
func (f *Store) Remove(ctx context.Context, lease store.Lease) error {
	err := f.write(ctx, func(c *conn) error {
		log, err := checkLease(c, lease)
		if err != nil {
			return err
		}
		return c.do("DELETE FROM logs WHERE id = ?", log)
	})
	if err != nil {
		return err
	}
	_ = os.Remove(f.lockPath(lease.ID)) // an empty file; the epoch stops a process that opened it
	return f.Release(lease)
}

// findLog returns the number of a log in the database.
func findLog(c *conn, id store.ID) (log int64, err error) {
	err = c.query("SELECT id FROM logs WHERE kind = ? AND name = ?", []any{string(id.Kind), id.Name},
		func(row *sqlite3.Stmt) error {
			log = row.ColumnInt64(0)
			return nil
		})
	if err == nil && log == 0 {
		err = fmt.Errorf("%s: %w", id, store.ErrNotFound)
	}
	return log, err
}
