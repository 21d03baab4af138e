package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// Append implements [store.Store].
func (f *Store) Append(ctx context.Context, lease store.Lease, entries ...store.Entry) error {
	for i := range entries {
		if err := f.setAside(&entries[i]); err != nil {
			return err
		}
	}
	return f.write(ctx, func(c *conn) error { return f.append(c, lease, entries) })
}

// Replace implements [store.Store].
func (f *Store) Replace(ctx context.Context, lease store.Lease, entries ...store.Entry) error {
	for i := range entries {
		if err := f.setAside(&entries[i]); err != nil {
			return err
		}
	}

	var old []string
	return f.change(ctx, write{
		do: func(c *conn) error {
			log, err := checkLease(c, lease)
			if err != nil {
				return err
			}
			old, err = readDigests(c, "SELECT DISTINCT digest FROM entries WHERE log = ? AND digest <> ''", log)
			if err != nil {
				return err
			}
			if err := c.do("DELETE FROM entries WHERE log = ?", log); err != nil {
				return err
			}
			return f.append(c, lease, entries)
		},
		clean: func(c *conn) error {
			f.deleteUnreferenced(c, old)
			return nil
		},
	})
}

// readDigests returns the digests that a statement selects.
func readDigests(c *conn, sql string, args ...any) (digests []string, err error) {
	err = c.query(sql, args, func(row *sqlite3.Stmt) error {
		digests = append(digests, row.ColumnText(0))
		return nil
	})
	return digests, err
}

// Note implements [store.Store].
func (f *Store) Note(lease store.Lease, entry store.Entry) {
	do := func(c *conn) error { return f.append(c, lease, []store.Entry{entry}) }
	if err := f.setAside(&entry); err != nil {
		do = func(*conn) error { return err } // the next Append returns the error
	}
	_ = f.send(context.Background(), write{do: do}) // after Close there is no next Append
}

// setAside checks an entry, and writes its large content to a blob.
func (f *Store) setAside(e *store.Entry) error {
	err := e.Check()
	if err == nil && e.Digest != "" && !objects.IsDigest(e.Digest) {
		err = fmt.Errorf("%.80q is not the SHA-256 of a content", e.Digest)
	}
	if err != nil || len(e.Blob) == 0 {
		return err
	}

	e.Digest, err = f.writeBlob(e.Blob)
	return explain(err)
}

func (f *Store) append(c *conn, lease store.Lease, entries []store.Entry) error {
	log, err := checkLease(c, lease)
	if err != nil {
		return err
	}

	var sum store.Cost
	for i := range entries {
		e := &entries[i]
		if e.Digest != "" {
			if err := f.keepBlob(e); err != nil {
				return err
			}
		}
		err := c.do(`INSERT INTO entries (log, turn, kind, key, digest, data, sum,
			calls, input_tokens, output_tokens, usd, unpriced, tool_calls)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			log, e.Turn, e.Kind, e.Key, e.Digest, notNil(e.Data), sumEntry(e),
			e.Cost.Calls, e.Cost.InputTokens, e.Cost.OutputTokens, e.Cost.USD, e.Cost.Unpriced,
			e.Cost.ToolCalls)
		if err != nil {
			return err
		}
		sum.Add(e.Cost)
	}

	return c.do(`UPDATE logs SET updated = ?, calls = calls + ?, input_tokens = input_tokens + ?,
		output_tokens = output_tokens + ?, usd = usd + ?, unpriced = unpriced + ?, tool_calls = tool_calls + ?
		WHERE id = ?`,
		now().UnixNano(), sum.Calls, sum.InputTokens, sum.OutputTokens, sum.USD, sum.Unpriced, sum.ToolCalls, log)
}

// sumEntry computes a checksum that detects accidental damage to an entry. SQLite itself has
// checksums only for its unfinished writes.
func sumEntry(e *store.Entry) uint32 {
	text := fmt.Appendf(nil, "%d %q %q %q ", e.Turn, e.Kind, e.Key, e.Digest)
	return crc32.Update(crc32.Checksum(text, castagnoli), castagnoli, e.Data)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Entries implements [store.Store].
func (f *Store) Entries(ctx context.Context, id store.ID, q store.Query) (entries []store.Entry, err error) {
	if err := errors.Join(ctx.Err(), id.Check()); err != nil {
		return nil, err
	}
	err = f.read(func(c *conn) error {
		log, err := findLog(c, id)
		if err != nil {
			return err
		}

		kinds := q.Kinds
		if len(kinds) == 0 {
			kinds = []string{""} // all
		}
		for _, kind := range kinds {
			more, err := readEntries(c, log, kind, q)
			if err != nil {
				return err
			}
			entries = append(entries, more...)
		}
		return nil
	})

	slices.SortFunc(entries, func(a, b store.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	if q.Last && len(entries) > 1 {
		entries = entries[len(entries)-1:]
	}
	return entries, err
}

// readEntries returns the entries of one kind, or of all kinds.
func readEntries(c *conn, log int64, kind string, q store.Query) (entries []store.Entry, err error) {
	column, order := "log", "seq"
	if q.AfterSeq > 0 {
		column = "+log" // few entries of any log come later, so this keeps SQLite from using an index on log
	}
	if q.Last {
		order = "seq DESC LIMIT 1"
	}
	err = c.query(`SELECT seq, turn, kind, key, digest, data, calls, input_tokens, output_tokens, usd, unpriced,
		tool_calls, sum FROM entries
		WHERE `+column+` = ?1 AND turn >= ?2 AND seq > ?3 AND (?4 = '' OR kind = ?4) ORDER BY `+order,
		[]any{log, q.From, q.AfterSeq, kind}, func(row *sqlite3.Stmt) error {
			e := store.Entry{
				Seq: row.ColumnInt64(0), Turn: row.ColumnInt(1), Kind: row.ColumnText(2), Key: row.ColumnText(3),
				Digest: row.ColumnText(4), Data: row.ColumnBlob(5, nil), Cost: scanCost(row, 6),
			}
			if int64(sumEntry(&e)) != row.ColumnInt64(12) {
				return fmt.Errorf("%w: entry %d is not what was written", store.ErrDamaged, e.Seq)
			}
			entries = append(entries, e)
			return nil
		})
	return entries, err
}
