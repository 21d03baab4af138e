package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// writeSQL writes a group. Only the logs whose worker, epoch and number of writes are right take
// part, so a repeated statement changes nothing a second time. Its parts are in one statement,
// because the server begins to lock rows when it has a statement completely: a process that is
// paused while it sends blocks no other one.
const (
	writeSQL = `WITH change AS (
		SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
			$8::bigint[], $9::bigint[], $10::float8[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bytea[],
			$15::bigint[], $16::bytea[])
		AS c (log, epoch, before, batch, entries, calls, input_tokens, output_tokens, usd, unpriced, tool_calls, does,
			status, turn, reason)
	), head AS (
		UPDATE @heads h SET batch = c.batch, last = h.last + c.entries, updated = ` + nanoseconds + `,
			calls = h.calls + c.calls, input_tokens = h.input_tokens + c.input_tokens,
			output_tokens = h.output_tokens + c.output_tokens, usd = h.usd + c.usd,
			unpriced = h.unpriced + c.unpriced, tool_calls = h.tool_calls + c.tool_calls,
			status = CASE WHEN c.does IN (1, 2) THEN c.status ELSE h.status END,
			reason = CASE WHEN c.does IN (1, 2) THEN c.reason ELSE h.reason END,
			turn = CASE c.does WHEN 1 THEN c.turn WHEN 2 THEN least(h.turn, c.turn) ELSE h.turn END
		FROM change c
		WHERE h.log = c.log AND h.worker = $1 AND h.epoch = c.epoch AND h.batch = c.before
			AND EXISTS (SELECT FROM @workers WHERE id = $1 AND until > clock_timestamp())
		RETURNING h.log, h.last - c.entries AS before, c.does, c.turn
	), content AS (
		INSERT INTO @contents AS k (digest, size, bytes, stored)
		SELECT digest, octet_length(bytes), bytes, clock_timestamp()
		FROM unnest($17::bytea[], $18::bytea[]) AS n (digest, bytes) ORDER BY digest
		ON CONFLICT (digest) DO UPDATE SET bytes = excluded.bytes, stored = excluded.stored
		WHERE k.bytes IS NULL OR k.stored < excluded.stored - interval '10 minutes'
	), entry AS (
		INSERT INTO @entries (log, seq, turn, kind, key, digest, data, data_digest, sum,
			calls, input_tokens, output_tokens, usd, unpriced, tool_calls)
		SELECT e.log, head.before + e.n, e.turn, e.kind, e.key, e.digest, e.data, e.data_digest, e.sum,
			e.calls, e.input_tokens, e.output_tokens, e.usd, e.unpriced, e.tool_calls
		FROM head JOIN unnest($19::bigint[], $20::bigint[], $21::bigint[], $22::bytea[], $23::bytea[],
			$24::bytea[], $25::bytea[], $26::bytea[], $27::bigint[], $28::bigint[], $29::bigint[], $30::bigint[],
			$31::float8[], $32::bigint[], $33::bigint[])
		AS e (log, n, turn, kind, key, digest, data, data_digest, sum, calls, input_tokens, output_tokens, usd,
			unpriced, tool_calls) ON e.log = head.log
	)`
	removeSQL = `, gone AS (
		DELETE FROM @entries e USING head
		WHERE e.log = head.log AND (head.does = 3 OR head.does = 2 AND e.turn > head.turn)
	)`
	selectSQL = ` SELECT log FROM head`
	// nanoseconds is the time of the database. It is for display: no decision depends on it.
	nanoseconds = `(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`
)

// commit writes a group and sets the errors of its changes. A change that fails by itself does not
// affect the others.
func (s *Store) commit(group []*bundle) {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Timeout)
	defer cancel()
	for _, b := range group {
		b.number()
	}

	inDoubt := false
	for pause := newBackoff(); ; {
		s.refuseDead(group, inDoubt)
		open := pendingOf(group)
		if len(open) == 0 {
			return
		}

		err := s.writeOnce(ctx, open, inDoubt)
		switch {
		case err == nil:
			return
		case isTransient(err):
			inDoubt = inDoubt || !pgconn.SafeToRetry(err)
			if !pause.wait(ctx) {
				fail(open, s.describeUnknown(inDoubt, err))
				return
			}
		case inDoubt:
			if s.judge(ctx, open, true) != nil {
				fail(open, s.describeUnknown(true, err))
			}
			replaceNotKept(open, err)
			return
		default:
			s.commitAlone(open, err)
			return
		}
	}
}

// number gives a write its number, and one that takes its place in the database if it must not be
// kept any more.
func (b *bundle) number() {
	h := b.held
	b.before, b.batch, b.burnt, b.err = h.batch, h.number+1, h.number+2, errPending
	h.number += 2
}

// errPending marks a bundle without an outcome.
var errPending = errors.New("it has no outcome yet")

// pendingOf returns the bundles without an outcome.
func pendingOf(group []*bundle) (open []*bundle) {
	for _, b := range group {
		if b.err == errPending { //nolint:errorlint // it is a mark
			open = append(open, b)
		}
	}
	return open
}

// fail sets the outcome of bundles that have none.
func fail(group []*bundle, err error) {
	for _, b := range pendingOf(group) {
		b.err = err
	}
}

// describeUnknown returns the error of a write that was given up. If it may have been kept, the
// lease is lost: nothing can be written behind a write with an unknown outcome.
func (s *Store) describeUnknown(inDoubt bool, err error) error {
	if !inDoubt {
		return fmt.Errorf("the database has not done it within %v: %w", s.o.Timeout, err)
	}
	return fmt.Errorf("the database does not say whether it has kept a write: %w: %w", store.ErrLost, err)
}

// refuseDead refuses the bundles of workers that could not renew in time.
func (s *Store) refuseDead(group []*bundle, inDoubt bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range pendingOf(group) {
		if b.held.isLost || !b.held.worker.isAlive() {
			b.err = lost(b.held.id)
			if inDoubt {
				b.err = s.describeUnknown(true, b.err)
			}
		}
	}
}

// commitAlone handles a statement that failed as a whole, so nothing was kept. It finds the changes
// that fail.
func (s *Store) commitAlone(group []*bundle, err error) {
	if len(group) == 1 && len(group[0].changes) == 1 {
		group[0].err = err
		return
	}
	for _, b := range group {
		b.err = nil
		for _, c := range b.changes {
			one := &bundle{held: b.held, changes: []*change{c}}
			if b.err == nil {
				s.commit([]*bundle{one})
			} else {
				one.err = b.err
			}

			c.err = one.err
			if endsLease(one.err) {
				b.err = one.err
			}
		}
		b.isSplit = true
	}
}

// endsLease reports whether an error ends the lease: nothing can be written any more.
func endsLease(err error) bool {
	return errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrNotFound)
}

// replaceNotKept replaces the verdict on writes that were not kept by the reason of their failure.
func replaceNotKept(group []*bundle, err error) {
	for _, b := range group {
		if errors.Is(b.err, errNotKept) {
			b.err = err
		}
	}
}

// writeOnce sends the statement, and decides about the bundles that it has left out.
func (s *Store) writeOnce(ctx context.Context, group []*bundle, inDoubt bool) error {
	sql := s.writeSQL
	limit := s.attemptTime() + time.Duration(countGroup(group)/mostBytes)*time.Second
	for _, b := range group {
		if b.changes[0].does >= doesCut {
			sql, limit = s.removeSQL, s.o.Timeout // a deletion takes its time
		}
	}

	written := map[int64]bool{}
	err := attempt(ctx, s.pool, limit, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, sql, arguments(group)...)
		if err != nil {
			return err
		}
		var log int64
		_, err = pgx.ForEachRow(rows, []any{&log}, func() error {
			written[log] = true
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}

	var others []*bundle
	for _, b := range group {
		if written[b.held.log] {
			b.keep()
		} else {
			others = append(others, b)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return s.judge(ctx, others, inDoubt)
}

// keep records that a bundle is durable.
func (b *bundle) keep() {
	b.held.batch, b.err = b.batch, nil
}

func countGroup(group []*bundle) (n int64) {
	for _, b := range group {
		n += countBytes(b.changes)
	}
	return n
}

// errNotKept is the verdict on a write that was not kept.
var errNotKept = errors.New("it was not kept")

// numbers are those of a log in the database.
type numbers struct{ epoch, batch, endedEpoch, endedBatch int64 }

// These statements read the numbers of logs. The second is for writes that an earlier statement may
// have kept, or may still keep. It waits for statements in flight, and takes the numbers of those
// that have not begun, so that they change nothing. When it is committed, everything that it has
// seen is as durable as the server promises.
const (
	lookSQL = `SELECT log, epoch, batch, ended_epoch, ended_batch FROM @heads WHERE log = ANY($1)`
	burnSQL = `UPDATE @heads h SET batch = CASE WHEN h.epoch = c.epoch AND h.batch = c.before THEN c.burnt
			ELSE h.batch END
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS c (log, epoch, before, burnt)
		WHERE h.log = c.log RETURNING h.log, h.epoch, h.batch, h.ended_epoch, h.ended_batch`
)

// judge decides whether writes were kept that a statement has left out.
func (s *Store) judge(ctx context.Context, group []*bundle, inDoubt bool) error {
	logs := make([]int64, len(group))
	epochs, before, burnt := make([]int64, len(group)), make([]int64, len(group)), make([]int64, len(group))
	for i, b := range group {
		logs[i], epochs[i], before[i], burnt[i] = b.held.log, b.held.epoch, b.before, b.burnt
	}

	sql, args := lookSQL, []any{logs}
	if inDoubt {
		sql, args = burnSQL, []any{logs, epochs, before, burnt}
	}

	found := map[int64]numbers{}
	err := s.try(ctx, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, s.qualify(sql), args...)
		if err != nil {
			return err
		}
		var log int64
		var n numbers
		_, err = pgx.ForEachRow(rows, []any{&log, &n.epoch, &n.batch, &n.endedEpoch, &n.endedBatch}, func() error {
			found[log] = n
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}

	for _, b := range group {
		n, exists := found[b.held.log]
		b.decide(n, exists)
	}
	return nil
}

// decide decides about a bundle by the numbers of its log. If a write was kept and another process
// has the log by now, the next write learns that.
func (b *bundle) decide(n numbers, exists bool) {
	h := b.held
	own := n.epoch == h.epoch
	switch {
	case !exists:
		b.err = fmt.Errorf("%s: %w", h.id, store.ErrNotFound)
	case own && n.batch == b.batch, n.endedEpoch == h.epoch && n.endedBatch == b.batch:
		b.keep()
	case own && n.batch == b.burnt:
		h.batch = b.burnt
		b.err = fmt.Errorf("%w: %w", errNotKept, lost(h.id))
	case own && n.batch < b.before:
		b.err = fmt.Errorf("%w: the database has lost what it acknowledged: %w", store.ErrDamaged, lost(h.id))
	default:
		b.err = lost(h.id)
	}
}
