package records

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/keep/damage"
)

// withContents is the first version with the table contents.
const withContents = 4

// enter adds the contents of an earlier version to the table, without digests. Their present bytes
// are accepted unchecked, but from now on a missing file is noticed.
func enter(ctx context.Context, tx *sql.Tx, dir string) error {
	if err := sweep(ctx, tx, dir); err != nil {
		return err
	}
	var all []string
	for _, query := range []string{
		`SELECT 'files/' || id FROM files`,
		`SELECT 'sessions/' || id || '/state' FROM sessions WHERE json_extract(standing, '$.bytes') > 0`,
		`SELECT 'sessions/' || s.id || '/contexts/' || c.key FROM sessions s, json_each(s.spec, '$.contexts') c`,
		`SELECT 'runs/' || r.id || '/contexts/' || c.key FROM runs r, json_each(r.spec, '$.contexts') c`,
	} {
		some, err := listTexts(ctx, tx, query)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}

	for _, pattern := range []string{"sessions/*/snapshots/snap_*", "runs/*/events.jsonl"} {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		for _, file := range found {
			name, err := filepath.Rel(dir, file)
			if err != nil {
				return err
			}
			all = append(all, filepath.ToSlash(name))
		}
	}

	for _, name := range all {
		bytes, created := int64(-1), time.Now()
		if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			bytes, created = info.Size(), info.ModTime()
		}
		if path.Base(name) == EventsFile {
			if bytes == 0 { // its run never began
				continue
			}
			bytes = -1
		}
		if err := addContent(ctx, tx, name, nil, bytes, created); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes the remains of an earlier version that was killed: files and folders without a row
// yet, and incomplete states. Files and folders go to the quarantine, since their row may have been
// lost.
func sweep(ctx context.Context, tx *sql.Tx, dir string) error {
	q := damage.NewQuarantine(dir)
	for _, kind := range []struct{ folder, prefix, table string }{
		{"files", "file-", "files"}, {"runs", "run_", "runs"}, {"sessions", "sess_", "sessions"},
	} {
		entries, err := os.ReadDir(filepath.Join(dir, kind.folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		ids, err := listTexts(ctx, tx, `SELECT id FROM `+kind.table)
		if err != nil {
			return err
		}
		known := map[string]bool{}
		for _, id := range ids {
			known[id] = true
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), kind.prefix) && !known[entry.Name()] {
				if err := q.Take(dir, filepath.Join(kind.folder, entry.Name())); err != nil {
					return err
				}
			}
		}
	}

	for _, pattern := range []string{"sessions/sess_*/new-*", "sessions/sess_*/snapshots/new-*"} {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		for _, file := range found {
			err = errors.Join(err, os.Remove(file))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// EventsFile is the name of the log of a run's events, which contains its own checksums.
const EventsFile = "events.jsonl"

func addContent(ctx context.Context, tx *sql.Tx, name string, digest []byte, bytes int64, created time.Time) error {
	if digest == nil {
		digest = []byte{}
	}
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO contents (path, digest, bytes, created) VALUES (?, ?, ?, ?)`,
		name, digest, bytes, Time(created))
	return err
}

func listTexts(ctx context.Context, tx *sql.Tx, query string) (all []string, err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}
