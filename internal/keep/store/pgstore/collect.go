package pgstore

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// These bound how many contents Collect looks at, and deletes, in one transaction. While it deletes
// objects, an Append of the same content waits.
const (
	lookAtOnce   = 1000
	deleteAtOnce = 16
)

// Collect implements [store.Store]. Any process may call it at any time, and several at once.
func (s *Store) Collect(ctx context.Context) (collected store.Collected, err error) {
	if s.readOnly {
		return collected, store.ErrReadOnly
	}
	if err := s.adoptObjects(ctx); err != nil {
		return collected, err
	}

	for after := []byte{}; ; {
		var n store.Collected
		if n, after, err = s.collectSome(ctx, after); err != nil {
			return collected, err
		}
		collected.Blobs += n.Blobs
		collected.Bytes += n.Bytes
		if after == nil {
			return collected, nil
		}
	}
}

// adoptObjects gives rows to objects that have none, as after the loss of a database, so that they
// are collected like others.
func (s *Store) adoptObjects(ctx context.Context) error {
	var digests [][]byte
	adopt := func() error {
		err := s.try(ctx, func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, s.qualify(`INSERT INTO @contents (digest, size, stored)
				SELECT digest, 0, '-infinity' FROM unnest($1::bytea[]) AS n (digest) ORDER BY digest
				ON CONFLICT (digest) DO NOTHING`), digests)
			return err
		})
		digests = digests[:0]
		return err
	}

	spared := time.Now().Add(-s.o.Spare)
	err := s.objects.List(ctx, func(o objects.Object) error {
		if s.o.Spare > 0 && o.Stored.After(spared) {
			return nil
		}
		digests = append(digests, parseDigest(o.Digest))
		if len(digests) < lookAtOnce {
			return nil
		}
		return adopt()
	})
	if err != nil || len(digests) == 0 {
		return err
	}
	return adopt()
}

// candidate is a content that no entry had when it was found.
type candidate struct {
	digest   []byte
	size     int64
	isObject bool
}

// collectSome deletes contents from a digest on. It returns the digest from which to go on, or nil
// at the end.
func (s *Store) collectSome(ctx context.Context, after []byte) (n store.Collected, next []byte, err error) {
	var found []candidate
	err = s.each(ctx, `SELECT digest, size, bytes IS NULL FROM @contents k
		WHERE digest > $1 AND stored <= clock_timestamp() - $2::interval
			AND NOT EXISTS (SELECT FROM @entries e WHERE e.digest = k.digest)
			AND NOT EXISTS (SELECT FROM @entries e WHERE e.data_digest = k.digest)
		ORDER BY digest LIMIT $3`, []any{after, interval(s.o.Spare), lookAtOnce}, func(row pgx.Rows) error {
		var c candidate
		err := row.Scan(&c.digest, &c.size, &c.isObject)
		found = append(found, c)
		return err
	})
	if err != nil {
		return n, nil, err
	}

	if len(found) == lookAtOnce {
		next = found[len(found)-1].digest
	}
	for len(found) > 0 {
		some := found[:min(deleteAtOnce, len(found))]
		found = found[len(some):]
		got, err := s.deleteContents(ctx, some)
		if isCollected(err) && len(some) > 1 { // an entry refers to one of them by now
			for i := range some {
				one, failed := s.deleteContents(ctx, some[i:i+1])
				got.Blobs += one.Blobs
				got.Bytes += one.Bytes
				if err = failed; err != nil && !isCollected(err) {
					break
				}
			}
		}
		if err != nil && !isCollected(err) {
			return n, nil, err
		}
		n.Blobs += got.Blobs
		n.Bytes += got.Bytes
	}
	return n, next, nil
}

// deleteContents deletes contents to which no entry refers, all or none. The rows go first, which
// their foreign keys allow only without an entry, and lock out entries until the objects are gone.
func (s *Store) deleteContents(ctx context.Context, some []candidate) (n store.Collected, err error) {
	digests := make([][]byte, len(some))
	isObject := map[string]bool{}
	for i, c := range some {
		digests[i] = c.digest
		isObject[string(c.digest)] = c.isObject
	}

	err = s.tryLong(ctx, func(ctx context.Context, c *pgx.Conn) error {
		n = store.Collected{}
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			deleted, err := s.deleteRows(ctx, tx, digests)
			if err != nil {
				return err
			}
			for _, d := range deleted {
				size := d.size
				if isObject[string(d.digest)] {
					if size, err = s.removeObject(ctx, d); err != nil {
						return err
					}
				}
				n.Blobs++
				n.Bytes += size
			}
			return nil
		})
	})
	if err != nil {
		n = store.Collected{}
	}
	return n, err
}

// deleteRows deletes the rows of contents, except those that another process has just stored or is
// using. The server ends the transaction if this process is paused.
func (s *Store) deleteRows(ctx context.Context, tx pgx.Tx, digests [][]byte) (deleted []candidate, err error) {
	if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = '60s'"); err != nil {
		return nil, err
	}

	rows, err := tx.Query(ctx, s.qualify(`WITH free AS (
		SELECT digest FROM @contents WHERE digest = ANY($1) AND stored <= clock_timestamp() - $2::interval
		ORDER BY digest FOR UPDATE SKIP LOCKED)
		DELETE FROM @contents k USING free WHERE k.digest = free.digest RETURNING k.digest, k.size`),
		digests, interval(s.o.Spare))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d candidate, err error) {
		err = row.Scan(&d.digest, &d.size)
		return d, err
	})
}

// removeObject deletes an object, and returns its size in bytes.
func (s *Store) removeObject(ctx context.Context, d candidate) (size int64, err error) {
	name := hex.EncodeToString(d.digest)
	size = d.size
	if size == 0 { // it had no row
		known, err := s.objects.Stat(ctx, name)
		if err != nil && !errors.Is(err, objects.ErrNotFound) {
			return 0, err
		}
		size = known.Size
	}
	return size, s.objects.Remove(ctx, name)
}
