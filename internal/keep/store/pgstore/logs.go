package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// The first number of a new log is its time in microseconds. A log that takes the name of a removed
// one so has higher numbers, and those who read the old one miss nothing.
const firstNumber = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// Create implements [store.Store].
func (s *Store) Create(ctx context.Context, log store.Log) error {
	args, err := s.describe(&log)
	if err != nil {
		return err
	}
	return s.create(ctx, log.ID, `WITH target AS (`+insertLog+` RETURNING id)
		INSERT INTO @heads (log, last, updated, status, turn, reason)
		SELECT id, `+firstNumber+`, `+nanoseconds+`, $10::bytea, $11::bigint, $12::bytea
		FROM target RETURNING log`, args)
}

const insertLog = `INSERT INTO @logs (kind, name, title, find, spec, parent, parent_turn, created, made)
	SELECT $1, $2, $3::bytea, $4::bytea, $5::bytea, $6::bytea, $7::bigint, $8::bigint, $9::bytea`

// describe checks a new log and returns the arguments that describe it.
func (s *Store) describe(log *store.Log) ([]any, error) {
	if err := log.Check(); err != nil {
		return nil, err
	}
	if s.readOnly {
		return nil, store.ErrReadOnly
	}
	if len(log.Spec) > store.MaxSpec {
		return nil, fmt.Errorf("the beginning of %s has %d bytes, more than %d",
			log.ID, len(log.Spec), store.MaxSpec)
	}
	if log.Created.IsZero() {
		log.Created = time.Now()
	}

	title, made := bound(log.Title), make([]byte, 16)
	_, _ = rand.Read(made) // it never fails
	find := []byte(strings.ToLower(log.Name + "\n" + string(title)))
	return []any{
		string(log.Kind), log.Name, title, find, notNil(log.Spec), bound(log.Parent), log.ParentTurn,
		log.Created.UnixNano(), made, bound(log.Status), log.Turn, bound(log.Reason),
	}, nil
}

// create runs a statement that creates a log. If its outcome was unknown and it is repeated, the log
// exists: it is recognised by its random number, the ninth argument.
func (s *Store) create(ctx context.Context, id store.ID, sql string, args []any) error {
	return s.tryLong(ctx, func(ctx context.Context, c *pgx.Conn) error {
		var number int64
		err := c.QueryRow(ctx, s.qualify(sql), args...).Scan(&number)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != codeUnique {
			return err
		}

		// The update waits, like any commit, until the log is as durable as the server promises.
		tag, err := c.Exec(ctx, s.qualify(`UPDATE @logs SET made = made
			WHERE kind = $1 AND name = $2 AND made = $3`), string(id.Kind), id.Name, args[8])
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("%s: %w", id, store.ErrExists)
		}
		return err
	})
}

const logColumns = `l.kind, l.name, l.title, l.spec, l.parent, l.parent_turn, l.created, h.updated, h.status, h.turn,
	h.reason, h.calls, h.input_tokens, h.output_tokens, h.usd, h.unpriced, h.tool_calls, h.epoch`

func scanLog(row pgx.Row) (log store.Log, err error) {
	var kind string
	var title, spec, parent, status, reason []byte
	var created, updated int64
	c := &log.Spent
	err = row.Scan(&kind, &log.Name, &title, &spec, &parent, &log.ParentTurn, &created, &updated, &status, &log.Turn,
		&reason, &c.Calls, &c.InputTokens, &c.OutputTokens, &c.USD, &c.Unpriced, &c.ToolCalls, &log.Epoch)
	log.Kind, log.Title, log.Spec, log.Parent = store.Kind(kind), string(title), spec, string(parent)
	log.Status, log.Reason = string(status), string(reason)
	log.Created, log.Updated = time.Unix(0, created), time.Unix(0, updated)
	return log, err
}

// Log implements [store.Store].
func (s *Store) Log(ctx context.Context, id store.ID) (log store.Log, err error) {
	if err := errors.Join(ctx.Err(), id.Check()); err != nil {
		return log, err
	}
	err = s.try(ctx, func(ctx context.Context, c *pgx.Conn) error {
		log, err = scanLog(c.QueryRow(ctx, s.qualify("SELECT "+logColumns+` FROM @logs l JOIN @heads h ON h.log = l.id
			WHERE l.kind = $1 AND l.name = $2`), string(id.Kind), id.Name))
		return err
	})
	return log, checkRow(err, id)
}

// mostFind bounds the text in which a search looks, in bytes: a longer text is not found.
const mostFind = 100 + 5*store.MaxTitle

// Logs implements [store.Store].
func (s *Store) Logs(ctx context.Context, filter store.Filter) (logs []store.Log, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	if len(filter.Text) > mostFind {
		return nil, nil
	}
	var limit *int // nil: all
	if filter.Limit > 0 {
		limit = &filter.Limit
	}
	since := int64(0)
	if !filter.Since.IsZero() {
		since = filter.Since.UnixNano()
	}
	err = s.each(ctx, "SELECT "+logColumns+` FROM @logs l JOIN @heads h ON h.log = l.id
		WHERE ($1 = '' OR l.kind = $1) AND ($2::bytea = '' OR h.status = $2)
			AND h.usd >= $3 AND h.updated >= $4 AND ($5::bytea = '' OR position($5 IN l.find) > 0)
		ORDER BY h.updated DESC, l.id DESC LIMIT $6`,
		[]any{
			string(filter.Kind), []byte(filter.Status), filter.MinUSD, since,
			[]byte(strings.ToLower(filter.Text)), limit,
		}, func(row pgx.Rows) error {
			log, err := scanLog(row)
			logs = append(logs, log)
			return err
		})
	return logs, err
}

// Copy implements [store.Store].
func (s *Store) Copy(ctx context.Context, from store.ID, turn int, to store.Log) error {
	if err := errors.Join(ctx.Err(), from.Check()); err != nil {
		return err
	}
	to.Parent, to.ParentTurn, to.Turn = from.Name, turn, turn
	args, err := s.describe(&to)
	if err != nil {
		return err
	}
	if err := s.flushLog(ctx, from); err != nil {
		return err
	}

	args = append(args, string(from.Kind), from.Name)
	for range 5 {
		err = s.create(ctx, to.ID, `WITH source AS (
				SELECT h.log, h.last FROM @logs l JOIN @heads h ON h.log = l.id WHERE l.kind = $13 AND l.name = $14
			), target AS (`+insertLog+` FROM source RETURNING id
			), copied AS (
				INSERT INTO @entries (log, seq, turn, kind, key, digest, data, data_digest, sum,
					calls, input_tokens, output_tokens, usd, unpriced, tool_calls)
				SELECT target.id, e.seq, e.turn, e.kind, e.key, e.digest, e.data, e.data_digest, e.sum,
					0, 0, 0, 0, 0, 0
				FROM source JOIN @entries e ON e.log = source.log, target WHERE e.turn <= $7
			)
			INSERT INTO @heads (log, last, updated, status, turn, reason)
			SELECT target.id, greatest(source.last, `+firstNumber+`), `+nanoseconds+`,
				$10::bytea, $11::bigint, $12::bytea
			FROM source, target RETURNING log`, args)
		if !isCollected(err) { // otherwise the entries of a content were removed meanwhile
			break
		}
	}
	return checkRow(err, from)
}

// flushLog makes the notes of a log durable if this process has its lease.
func (s *Store) flushLog(ctx context.Context, id store.ID) error {
	s.mu.Lock()
	h := s.held[id]
	s.mu.Unlock()
	if h == nil {
		return nil
	}

	if err := s.flush(ctx, h); err != nil && !errors.Is(err, store.ErrLost) {
		return err
	}
	return nil
}

// Remove implements [store.Store].
func (s *Store) Remove(ctx context.Context, lease store.Lease) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	h := s.find(lease)
	s.mu.Unlock()
	if h == nil {
		return s.explainMissing(ctx, lease)
	}

	if err := s.flush(ctx, h); endsLease(err) || ctx.Err() != nil {
		return err // other errors are those of notes, which go with the log
	}

	removed, tries := int64(0), 0
	err := s.tryLong(ctx, func(ctx context.Context, c *pgx.Conn) error {
		tries++
		tag, err := c.Exec(ctx, s.qualify(`WITH head AS (
			SELECT log FROM @heads WHERE log = $1 AND epoch = $2 AND worker = $3
				AND EXISTS (SELECT FROM @workers WHERE id = $3 AND until > clock_timestamp()) FOR UPDATE)
			DELETE FROM @logs WHERE id IN (SELECT log FROM head)`), h.log, h.epoch, h.worker.id)
		removed = tag.RowsAffected()
		return err
	})
	if err != nil {
		return err
	}

	s.mu.Lock()
	if s.held[h.id] == h {
		delete(s.held, h.id)
	}
	s.mu.Unlock()
	if removed > 0 {
		return nil
	}
	if err = s.explainMissing(ctx, lease); tries > 1 && errors.Is(err, store.ErrNotFound) {
		return nil // an earlier try has removed it
	}
	return err
}
