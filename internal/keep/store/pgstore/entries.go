package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// Append implements [store.Store].
func (s *Store) Append(ctx context.Context, lease store.Lease, entries ...store.Entry) error {
	return s.change(ctx, lease, entries, change{})
}

// Replace implements [store.Store]. It leaves contents to Collect.
func (s *Store) Replace(ctx context.Context, lease store.Lease, entries ...store.Entry) error {
	return s.change(ctx, lease, entries, change{does: doesReplace})
}

// SetState implements [store.Store].
func (s *Store) SetState(ctx context.Context, lease store.Lease, state store.State, entries ...store.Entry) error {
	return s.change(ctx, lease, entries, change{does: doesSetState, state: state})
}

// Cut implements [store.Store].
func (s *Store) Cut(ctx context.Context, lease store.Lease, turn int) error {
	return s.change(ctx, lease, nil, change{does: doesCut, state: store.State{Turn: turn}})
}

// change adds entries with an effect. If Collect has deleted a content between its preparation and
// the write, which takes a collector that spares nothing, the change is prepared again.
func (s *Store) change(ctx context.Context, lease store.Lease, entries []store.Entry, effect change) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	whole, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	for pause := newBackoff(); ; {
		c := effect
		if err := s.prepare(ctx, entries, &c); err != nil {
			return err
		}
		if err := s.write(ctx, lease, &c); !isCollected(err) || !pause.wait(whole) {
			return err
		}
	}
}

// Note implements [store.Store]. It is written after 50 ms at the latest.
func (s *Store) Note(lease store.Lease, entry store.Entry) {
	c := &change{}
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Timeout)
	defer cancel()

	err := s.prepare(ctx, []store.Entry{entry}, c)
	if err == nil {
		s.send(lease, c) // without the lease, the next Append fails anyway
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.find(lease); h != nil {
		h.settle(c, err)
	}
}

// fetchAtOnce bounds the large entries that are read at the same time.
const fetchAtOnce = 8

// Entries implements [store.Store].
func (s *Store) Entries(ctx context.Context, id store.ID, q store.Query) (entries []store.Entry, err error) {
	if err := errors.Join(ctx.Err(), id.Check()); err != nil {
		return nil, err
	}
	log, err := s.number(ctx, id)
	if err != nil {
		return nil, err
	}

	order := "seq"
	if q.Last {
		order = "seq DESC LIMIT 1"
	}

	var kinds [][]byte // nil selects all
	for _, kind := range q.Kinds {
		kinds = append(kinds, []byte(kind))
	}
	var rows []stored
	err = s.each(ctx, `SELECT seq, turn, kind, key, digest, data, data_digest, sum,
		calls, input_tokens, output_tokens, usd, unpriced, tool_calls
		FROM @entries WHERE log = $1 AND turn >= $2 AND seq > $3 AND ($4::bytea[] IS NULL OR kind = ANY($4))
		ORDER BY `+order, []any{log, q.From, q.AfterSeq, kinds}, func(row pgx.Rows) error {
		r, err := scanEntry(row)
		rows = append(rows, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.complete(ctx, rows)
}

// stored is an entry as the database returns it.
type stored struct {
	entry              store.Entry
	digest, dataDigest []byte
	sum                int64
}

func scanEntry(row pgx.Rows) (r stored, err error) {
	var kind, key []byte
	e := &r.entry
	err = row.Scan(&e.Seq, &e.Turn, &kind, &key, &r.digest, &e.Data, &r.dataDigest, &r.sum,
		&e.Cost.Calls, &e.Cost.InputTokens, &e.Cost.OutputTokens, &e.Cost.USD, &e.Cost.Unpriced, &e.Cost.ToolCalls)
	e.Kind, e.Key = string(kind), string(key)
	if r.digest != nil {
		e.Digest = fmt.Sprintf("%x", r.digest)
	}
	return r, err
}

// complete fetches the data of large entries, and checks all of them.
func (s *Store) complete(ctx context.Context, rows []stored) ([]store.Entry, error) {
	fetches, ctx := errgroup.WithContext(ctx)
	fetches.SetLimit(fetchAtOnce)
	for i := range rows {
		r := &rows[i]
		if r.dataDigest == nil {
			continue
		}
		fetches.Go(func() (err error) {
			r.entry.Data, err = s.readContent(ctx, r.dataDigest, store.MaxData)
			return err
		})
	}
	if err := fetches.Wait(); err != nil {
		return nil, err
	}

	var entries []store.Entry
	for i := range rows {
		e := &rows[i].entry
		if int64(sumEntry(e, rows[i].digest)) != rows[i].sum {
			return nil, fmt.Errorf("%w: entry %d is not what was written", store.ErrDamaged, e.Seq)
		}
		entries = append(entries, *e)
	}
	return entries, nil
}
