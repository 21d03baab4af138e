package sqlitestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/keep/dbfile"
	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// IsStore reports whether a folder contains a store, or the remains of one.
func IsStore(dir string) bool {
	for _, name := range []string{DatabaseName, blobFolder} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Check checks the whole store in a folder. With a quarantine, it also repairs: it salvages the
// rows of a damaged database, and removes the entries that are damaged or have damaged contents
// from their logs. Afterwards, a run continues from an earlier turn, and a session has no
// variables.
//
// While other processes are using the store, its log cannot be compared, and nothing can be
// repaired: the error is a [*dbfile.BusyError].
func Check(ctx context.Context, dir string, q *damage.Quarantine) (*damage.Report, error) {
	c := &check{ctx: ctx, dir: dir, q: q, report: &damage.Report{}}
	if err := c.run(); err != nil {
		return nil, fmt.Errorf("cannot check the store %s: %w", dir, explain(err))
	}
	return c.report, nil
}

// check is a check of a folder.
type check struct {
	ctx    context.Context //nolint:containedctx // the context of one check
	dir    string
	q      *damage.Quarantine
	report *damage.Report
	blobs  map[string]string // problem by digest, or empty
}

func (c *check) run() error {
	path := filepath.Join(c.dir, DatabaseName)
	hold, err := dbfile.AloneWithin(c.ctx, path, time.Second)
	var busy *dbfile.BusyError
	isAlone := err == nil
	if errors.As(err, &busy) && c.q == nil || errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = hold.Close() }()

	// This follows the lock, because another process may have added entries whose contents did not
	// exist before.
	if err := c.lookAtBlobs(); err != nil {
		return err
	}
	isReadable := true
	if isAlone {
		isReadable, err = c.checkFile(path)
		if err != nil {
			return err
		}
	}

	if isReadable {
		err = c.checkRows(path)
	}
	return errors.Join(err, c.reportBlobs())
}

// checkFile looks for damage in the file of the database, which no other process is using, and
// reports whether its rows can be read afterwards.
func (c *check) checkFile(path string) (isReadable bool, err error) {
	if !dbfile.IsThere(path) {
		if err := CheckMissing(c.dir); err == nil {
			return false, nil // an empty folder
		}
	}

	report, err := dbfile.Check(path, c.q, DatabaseName, createEmpty)
	if err != nil {
		return false, err
	}
	c.report.Join("", report.Report)
	if !report.IsWhole() && report.Found.IsEmpty() {
		c.nameLost()
	}

	if report.IsWhole() || c.q == nil {
		return report.IsWhole(), nil
	}
	return true, c.adopt(path, report.Found)
}

// nameLost names the runs and sessions of a completely lost database, by their lock files.
func (c *check) nameLost() {
	locks, _ := os.ReadDir(filepath.Join(c.dir, lockFolder)) // without a folder, there are no locks
	for _, lock := range locks {
		kind, name, _ := strings.Cut(lock.Name(), "-")
		if id := (store.ID{Kind: store.Kind(kind), Name: name}); id.Check() == nil {
			c.report.Add(damage.Finding{What: id.String(), Problem: "was in the database", Lost: "all of it"})
		}
	}
}

// createEmpty creates the database of an empty store.
func createEmpty(path string) error {
	if err := dbfile.Create(path); err != nil {
		return err
	}
	c, err := connectWriter(path)
	if err != nil {
		return err
	}
	return errors.Join(migrate(c), c.close())
}

// These statements restore the record of a log of which only the entries survive.
const (
	adoptLog = `INSERT INTO logs (id, kind, name, title, spec, parent, parent_turn, created, updated, status, turn,
		reason) SELECT ?1, ?2, ?3, '', x'', '', 0, ?4, ?4, 'interrupted', max(turn), 'its record was damaged'
		FROM entries WHERE log = ?1`
	adoptCosts = `UPDATE logs SET (calls, input_tokens, output_tokens, usd, unpriced, tool_calls) =
		(SELECT sum(calls), sum(input_tokens), sum(output_tokens), sum(usd), sum(unpriced), sum(tool_calls)
		FROM entries WHERE log = ?1) WHERE id = ?1`
)

// adopt creates logs for entries whose log is lost, under the original name if an index contains
// it.
func (c *check) adopt(path string, found *dbfile.Findings) error {
	names := map[int64]store.ID{}
	for _, row := range found.Lost {
		kind, _ := row.Values["kind"].(string)
		name, _ := row.Values["name"].(string)
		if id := (store.ID{Kind: store.Kind(kind), Name: name}); row.Table == "logs" && id.Check() == nil {
			names[row.Rowid] = id
		}
	}

	w, err := connectWriter(path)
	if err != nil {
		return err
	}
	defer func() { _ = w.close() }()
	return w.within(func() error {
		orphans, err := readNumbers(w, "SELECT DISTINCT log FROM entries WHERE log NOT IN (SELECT id FROM logs)")
		for _, log := range orphans {
			id, isKnown := names[log]
			if !isKnown {
				id = store.ID{Kind: store.Run, Name: fmt.Sprintf("recovered-%d", log)}
			}
			err = errors.Join(err, w.do(adoptLog, log, string(id.Kind), id.Name, now().UnixNano()),
				w.do(adoptCosts, log))
			c.report.Add(damage.Finding{
				What: id.String(), Problem: "its record is lost, and its entries are whole",
				Lost: "its title, and how it was begun", Done: "it has a new record",
			})
		}
		return err
	})
}

func readNumbers(c *conn, sql string) (all []int64, err error) {
	err = c.query(sql, nil, func(row *sqlite3.Stmt) error {
		all = append(all, row.ColumnInt64(0))
		return nil
	})
	return all, err
}

// lookAtBlobs checks that all contents match their names.
func (c *check) lookAtBlobs() error {
	c.blobs = map[string]string{}
	root := filepath.Join(c.dir, blobFolder)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // missing, or just deleted
		case err != nil:
			return err
		case entry.IsDir() || strings.HasPrefix(entry.Name(), ".new-"):
			return c.ctx.Err()
		}

		c.report.Files++
		if !objects.IsDigest(entry.Name()) || entry.Name()[:2] != filepath.Base(filepath.Dir(path)) {
			name := filepath.Join(blobFolder, filepath.Base(filepath.Dir(path)), entry.Name())
			c.report.Add(damage.Finding{What: name, Problem: "is no content", IsNote: true})
			return nil
		}
		var problem string
		switch err := checkBlob(path, entry.Name()); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, errNotWritten):
			problem = err.Error()
		case err != nil: // the disk or a permission: it may be intact
			return fmt.Errorf("cannot read a content: %w", err)
		}
		c.blobs[entry.Name()] = problem
		return nil
	})
	return err
}

// isThere reports whether the content with a digest exists now.
func (c *check) isThere(digest string) bool {
	if !objects.IsDigest(digest) {
		return false
	}
	_, err := os.Lstat(filepath.Join(c.dir, blobFolder, digest[:2], digest))
	return err == nil
}

// errNotWritten reports content that does not match its name.
var errNotWritten = errors.New("is not what was written")

// checkBlob compares the content of a file with its digest.
func checkBlob(path, digest string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	expand, err := zstd.NewReader(file, zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return errNotWritten
	}
	defer expand.Close()

	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(expand, store.MaxBlob+1))
	if system := (*fs.PathError)(nil); errors.As(err, &system) {
		return err
	}
	if err != nil || n > store.MaxBlob {
		return errNotWritten
	}
	if hex.EncodeToString(sum.Sum(nil)) != digest {
		return errNotWritten
	}
	return nil
}

// reportBlobs reports damaged contents, and moves them to the quarantine.
func (c *check) reportBlobs() error {
	for digest, problem := range c.blobs {
		if problem == "" {
			continue
		}
		f := damage.Finding{What: filepath.Join(blobFolder, digest[:2], digest), Problem: problem}
		if c.q != nil {
			if err := c.q.Take(c.dir, f.What); err != nil {
				return err
			}
			f.Done = "it is in the quarantine"
		}
		c.report.Add(f)
	}
	return nil
}

// badEntry is a damaged entry, or an entry with damaged content.
type badEntry struct {
	Log     store.ID `json:"log"`
	Seq     int64    `json:"seq"`
	Turn    int      `json:"turn"`
	Kind    string   `json:"kind"`
	Key     string   `json:"key"`
	Digest  string   `json:"digest,omitempty"`
	Data    []byte   `json:"data"`
	Problem string   `json:"problem"`
}

// checkRows checks all entries.
func (c *check) checkRows(path string) error {
	db, err := connect(dbfile.Address(path))
	if err != nil {
		return err
	}
	defer func() { _ = db.close() }()
	if version, err := checkVersion(db); err != nil || version < oldestRead {
		if err == nil {
			c.report.Add(damage.Finding{
				What: DatabaseName, Problem: "is of an earlier version: the next command that uses it upgrades it",
				IsNote: true,
			})
		}
		return err
	}

	var bad []badEntry
	err = db.query(`SELECT e.seq, e.turn, e.kind, e.key, e.digest, e.data, e.sum, l.kind, l.name
		FROM entries e JOIN logs l ON l.id = e.log ORDER BY e.seq`, nil, func(row *sqlite3.Stmt) error {
		c.report.Records++
		e := store.Entry{
			Turn: row.ColumnInt(1), Kind: row.ColumnText(2), Key: row.ColumnText(3), Digest: row.ColumnText(4),
			Data: row.ColumnBlob(5, nil),
		}
		var problem string
		state, isThere := c.blobs[e.Digest]
		switch {
		case int64(sumEntry(&e)) != row.ColumnInt64(6):
			problem = "is not what was written"
		case e.Digest != "" && !isThere && c.isThere(e.Digest): // it was added after the check
			return c.ctx.Err()
		case e.Digest != "" && !isThere:
			problem = fmt.Sprintf("its content %.12s is missing", e.Digest)
		case e.Digest != "" && state != "":
			problem = fmt.Sprintf("its content %.12s %s", e.Digest, state)
		default:
			return c.ctx.Err()
		}
		bad = append(bad, badEntry{
			store.ID{Kind: store.Kind(row.ColumnText(7)), Name: row.ColumnText(8)},
			row.ColumnInt64(0), e.Turn, e.Kind, e.Key, e.Digest,
			e.Data, problem,
		})
		return nil
	})
	if err != nil {
		return err
	}
	return c.takeOut(path, bad)
}

// takeOut reports bad entries, and removes them from their logs.
func (c *check) takeOut(path string, bad []badEntry) error {
	for i := range bad {
		e := &bad[i]
		f := damage.Finding{
			What: e.Log.String(), Problem: fmt.Sprintf("entry %d (%s of turn %d) %s", e.Seq, e.Kind, e.Turn, e.Problem),
			Lost: "the entry",
		}
		if c.q != nil {
			line, err := json.Marshal(e)
			if err == nil {
				err = c.q.Note("entries.jsonl", string(line))
			}
			if err != nil {
				return err
			}
			f.Done = "it is in the quarantine, and the log goes on without it"
		}
		c.report.Add(f)
	}

	if c.q == nil || len(bad) == 0 {
		return nil
	}

	w, err := connectWriter(path)
	if err != nil {
		return err
	}
	return errors.Join(w.within(func() error {
		for i := range bad {
			if err := w.do("DELETE FROM entries WHERE seq = ?", bad[i].Seq); err != nil {
				return err
			}
		}
		return nil
	}), w.close())
}
