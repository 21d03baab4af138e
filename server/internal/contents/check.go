package contents

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/keep/snapshot"
	"github.com/rlmhq/rlm/server/internal/records"
)

// owners lists the folders of contents, with the tables of their owners.
var owners = []struct{ folder, table, what string }{
	{"files", "files", "uploaded file"}, {"runs", "runs", "run"}, {"sessions", "sessions", "session"},
}

// Missing lists contents whose file is missing or has the wrong size, without reading any file.
func (c *Contents) Missing(ctx context.Context) (all []*DamageError, err error) {
	rows, err := records.Contents(ctx, c.db, "")
	if err != nil {
		return nil, err
	}
	for i := range rows {
		info, err := os.Lstat(c.file(rows[i].Path))
		switch isLost, failed := records.IsLost(ctx, c.db, rows[i].Path); {
		case failed != nil:
			return nil, failed
		case isLost: // its loss is already recorded
		case errors.Is(err, fs.ErrNotExist):
			all = append(all, &DamageError{rows[i].Path, missing})
		case err != nil:
			return nil, err
		case rows[i].Bytes >= 0 && info.Size() != rows[i].Bytes:
			all = append(all, &DamageError{rows[i].Path, otherSize(info.Size(), rows[i].Bytes)})
		}
	}
	return all, nil
}

// Check reads all contents and compares them with their digests or, unless it is deep, only
// compares their sizes. If there is a quarantine, Check moves damaged contents there, and records
// the loss in the database. A file with a lost row is accepted unchecked.
func (c *Contents) Check(ctx context.Context, isDeep bool, q *damage.Quarantine) (*damage.Report, error) {
	k := &checker{Contents: c, ctx: ctx, isDeep: isDeep, q: q, report: &damage.Report{}}
	rows, err := records.Contents(ctx, c.db, "")
	if err != nil {
		return nil, err
	}

	known := map[string]bool{}
	for i := range rows {
		known[rows[i].Path] = true
		if err := k.look(&rows[i]); err != nil {
			return nil, err
		}
	}
	return k.report, k.findUnknown(known)
}

// checker is a check of all contents.
type checker struct {
	*Contents
	ctx    context.Context //nolint:containedctx // the context of one check
	isDeep bool
	q      *damage.Quarantine
	report *damage.Report
}

// look compares a content with its row.
func (k *checker) look(row *records.ContentRow) error {
	k.report.Records++
	isLost, err := records.IsLost(k.ctx, k.db, row.Path)
	if err != nil {
		return err
	}

	if isLost {
		k.report.Add(damage.Finding{What: row.Path, Problem: "was found to be damaged before", IsNote: true})
		return nil
	}
	if path.Base(row.Path) == records.EventsFile {
		return nil // it has its own checksums
	}

	content, err := k.Read(k.ctx, row.Path)
	if err == nil {
		k.report.Files++
		if k.isDeep {
			_, err = io.Copy(io.Discard, content)
		}
		err = errors.Join(err, content.Close())
	}

	var damaged *DamageError
	if !errors.As(err, &damaged) {
		return err
	}

	now, err := records.Content(k.ctx, k.db, row.Path)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !bytes.Equal(now.Digest, row.Digest):
		return nil // a server has changed the content meanwhile
	case err != nil:
		return err
	case damaged.IsThere() && isState(row.Path) && k.isWholeState(row.Path):
		return k.takeNewer(row)
	}
	return k.reportDamaged(row, damaged)
}

// isState reports whether a content is the state of a session, which has its own checksum.
func isState(name string) bool {
	return strings.HasPrefix(name, "sessions/") && !strings.Contains(name, "/contexts/")
}

func (k *checker) isWholeState(name string) bool {
	file, err := os.Open(k.file(name))
	if err != nil {
		return false
	}
	defer file.Close()
	_, _, err = snapshot.Read(file)
	return err == nil
}

// takeNewer reports a state that is intact but differs from its row, which must be older.
func (k *checker) takeNewer(row *records.ContentRow) error {
	f := damage.Finding{What: row.Path, Problem: "it is whole, and another one than its record says"}
	if k.q != nil {
		digest, err := digestOf(k.file(row.Path))
		if err != nil {
			return err
		}
		info, err := os.Stat(k.file(row.Path))
		if err != nil {
			return err
		}
		err = records.Within(k.ctx, k.db, func(tx *sql.Tx) error {
			return records.AddContent(k.ctx, tx, row.Path, digest, info.Size())
		})
		if err != nil {
			return err
		}
		f.Done = "it is taken as it is"
	}

	k.report.Add(f)
	return nil
}

// reportDamaged reports a damaged content and moves it aside.
func (k *checker) reportDamaged(row *records.ContentRow, damaged *DamageError) error {
	loss := lossOf(row)
	f := damage.Finding{What: row.Path, Problem: damaged.Problem, Lost: loss.what}
	if k.q == nil {
		k.report.Add(f)
		return nil
	}

	if damaged.Problem != missing {
		if err := k.q.Take(k.dir, filepath.FromSlash(row.Path)); err != nil {
			return err
		}
		f.Done = "it is in the quarantine; "
	}
	f.Done += loss.then
	k.report.Add(f)
	return records.Within(k.ctx, k.db, func(tx *sql.Tx) error { return loss.write(k.ctx, tx) })
}

// loss describes the loss caused by a damaged content, and the changes that a repair makes to the
// database.
type loss struct {
	what, then string
	statement  string // may be empty
	args       []any
	path       string // path of the row to remove; empty if the content can be sent again
	lost       string // the name that requests use; may be empty
}

const (
	loseFile  = `DELETE FROM files WHERE id = ?1`
	loseBytes = `UPDATE sessions SET bytes = bytes - ?2 WHERE id = ?1`
	loseState = `UPDATE sessions SET bytes = bytes - ?2, standing = json_remove(json_set(standing, '$.lost',
		json_object('snippets', json('[]'), 'reason',
		'The saved variables of the session were damaged on the server''s disk; it began again without them.')),
		'$.bytes', '$.variables') WHERE id = ?1`
)

// lossOf determines the loss from the path of a content.
func lossOf(row *records.ContentRow) loss {
	parts := strings.Split(row.Path, "/")
	if len(parts) < 2 { // the row is damaged
		return loss{what: "a content without a place", path: row.Path}
	}
	id, bytes := parts[1], max(row.Bytes, 0)
	switch {
	case parts[0] == "files":
		return loss{"the uploaded file", "upload it again", loseFile, []any{id}, row.Path, id}
	case parts[0] == "sessions" && len(parts) == 3:
		then := "its next result says so; its snapshots can be restored"
		return loss{"the saved variables of session " + id, then, loseState, []any{id, bytes}, row.Path, ""}
	case parts[0] == "sessions" && len(parts) == 4 && parts[2] == "snapshots":
		return loss{"a snapshot of session " + id, "", loseBytes, []any{id, bytes}, row.Path, parts[3]}
	case parts[0] == "sessions":
		return loss{what: "a context of session " + id, then: "it can be sent again", lost: row.Path}
	}
	return loss{what: "a context of run " + id, then: "its answer stays; it cannot go on", lost: row.Path}
}

func (l *loss) write(ctx context.Context, tx *sql.Tx) (err error) {
	if l.statement != "" {
		_, err = tx.ExecContext(ctx, l.statement, l.args...)
	}
	if l.path != "" {
		err = errors.Join(err, records.RemoveContents(ctx, tx, l.path))
	}

	if l.lost != "" {
		err = errors.Join(err, records.AddLost(ctx, tx, l.lost))
	}
	return err
}

// findUnknown finds files without a row, and owners with a lost record.
func (k *checker) findUnknown(known map[string]bool) error {
	for _, o := range owners {
		folders, err := os.ReadDir(filepath.Join(k.dir, o.folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, entry := range folders {
			var has bool
			row := k.db.QueryRowContext(k.ctx, `SELECT EXISTS (SELECT 1 FROM `+o.table+` WHERE id = ?)`, entry.Name())
			if err := row.Scan(&has); err != nil {
				return err
			}
			name := path.Join(o.folder, entry.Name())
			if !has {
				err = k.takeOrphan(name, o.what)
			} else {
				err = k.adopt(name, known)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOrphan reports data without an owner, and moves it aside.
func (k *checker) takeOrphan(name, what string) error {
	f := damage.Finding{What: name, Problem: "its record is missing", Lost: "the " + what}
	if k.q != nil {
		if err := k.q.Take(k.dir, filepath.FromSlash(name)); err != nil {
			return err
		}
		f.Done = "what is left of it is in the quarantine"
		err := records.Within(k.ctx, k.db, func(tx *sql.Tx) error {
			return errors.Join(records.RemoveContents(k.ctx, tx, name), records.AddLost(k.ctx, tx, path.Base(name)))
		})
		if err != nil {
			return err
		}
	}

	k.report.Add(f)
	return nil
}

// adopt reports an owner's files that have no row. A repair accepts them unchecked.
func (k *checker) adopt(name string, known map[string]bool) error {
	root := k.file(name)
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(k.dir, file)
		if err != nil {
			return err
		}
		content := filepath.ToSlash(rel)
		if known[content] {
			return nil
		}
		isOurs := slices.ContainsFunc([]string{
			"files/*", "runs/*/contexts/*", "runs/*/" + records.EventsFile,
			"sessions/*/state", "sessions/*/contexts/*", "sessions/*/snapshots/snap_*",
		}, func(pattern string) bool {
			is, _ := path.Match(pattern, content) // the pattern is valid
			return is
		})
		if !isOurs {
			k.report.Add(damage.Finding{What: content, Problem: "is no file of a server", IsNote: true})
			return nil
		}
		f := damage.Finding{What: content, Problem: "its record is missing", Lost: "its digest"}
		if k.q != nil {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			size := info.Size()
			if path.Base(content) == records.EventsFile {
				size = -1
			}
			err = records.Within(k.ctx, k.db, func(tx *sql.Tx) error {
				return records.AddContent(k.ctx, tx, content, nil, size)
			})
			if err != nil {
				return err
			}
			f.Done = "it is taken as it is"
		}
		k.report.Add(f)
		return nil
	})
}

func otherSize(has, wants int64) string {
	return fmt.Sprintf("it has %d bytes in place of %d", has, wants)
}
