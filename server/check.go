package server

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/keep/dbfile"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sessions"
)

// databaseName is the path of the database in a data folder.
const databaseName = "records/serve.db"

// Report lists the findings of a check.
type Report = damage.Report

// Check examines all data in the folder. If repair is set, it saves the rows of a damaged database,
// and moves damaged data aside. During a repair, no server must use the folder; otherwise the error
// is an [*InUseError].
func (f Folder) Check(
	ctx context.Context, repair bool, log *slog.Logger,
) (*Report, error) {
	dir := string(f)
	var q *damage.Quarantine
	if repair {
		q = damage.NewQuarantine(dir)
	}
	claim, err := f.claim(ctx, "rlm store check", "")
	var inUse *InUseError
	if q != nil && err != nil || err != nil && !errors.As(err, &inUse) && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	defer func() { _ = claim.Close() }()

	c := &check{ctx: ctx, dir: dir, q: q, log: log, isDeep: true, isAlone: claim != nil, report: &damage.Report{}}
	if claim != nil {
		claim.isLook = q == nil
		c.auditBytes = claim.auditBytes()
	}
	if err := c.all(); err != nil {
		return nil, fmt.Errorf("cannot check the data folder %s: %w", dir, err)
	}

	c.report.Kept = q.Dir()
	return c.report, nil
}

// check is a check of a data folder.
type check struct {
	ctx        context.Context //nolint:containedctx // the context of one check
	dir        string
	q          *damage.Quarantine
	log        *slog.Logger
	isDeep     bool // contents are also read
	isAlone    bool // no server uses the folder
	auditBytes int64
	report     *damage.Report
}

func (c *check) all() error {
	if sqlitestore.IsStore(Folder(c.dir).Store()) {
		report, err := sqlitestore.Check(c.ctx, Folder(c.dir).Store(), c.q.Below("store"))
		if err != nil {
			return err
		}
		c.report.Join("store", report)
	}
	if err := c.records(); err != nil {
		return err
	}

	found, err := access.CheckAudit(c.dir, c.auditBytes, c.q)
	if err != nil {
		return err
	}
	c.report.Files++
	if found != nil {
		c.report.Add(*found)
	}
	return nil
}

// records checks the database and the data to which its rows refer.
func (c *check) records() error {
	path := records.Path(c.dir)
	if !dbfile.IsThere(path) && !records.IsMissing(c.dir) {
		return nil // no server has used the folder
	}
	var checked *dbfile.Checked // nil while a server runs
	hold, err := dbfile.AloneWithin(c.ctx, path, time.Second)
	var busy *dbfile.BusyError
	switch {
	case err == nil:
		checked, err = dbfile.Check(path, c.q, databaseName, records.CreateEmpty)
		err = errors.Join(err, hold.Close())
	case c.q == nil && (errors.As(err, &busy) || errors.Is(err, fs.ErrPermission)):
		err = nil
	}
	if err != nil {
		return err
	}

	if checked != nil {
		c.report.Join("", checked.Report)
	}
	if checked != nil && !checked.IsWhole() && c.q == nil {
		c.report.Add(damage.Finding{
			What: "files, runs, sessions", Problem: "cannot be compared with a damaged database", IsNote: true,
		})
		return nil
	}

	db, err := records.Open(c.ctx, c.dir)
	if err != nil {
		return err
	}

	if checked != nil && !checked.IsWhole() {
		err = c.noteLost(db, checked.Found)
	}
	if err == nil {
		err = c.contents(db)
	}
	return errors.Join(err, db.Close())
}

// noteLost records lost rows, so that requests for them can report the loss.
func (c *check) noteLost(db *sql.DB, found *dbfile.Findings) error {
	return records.Within(c.ctx, db, func(tx *sql.Tx) error {
		if mayLackLogs(found) {
			if err := sessions.DistrustLogs(c.ctx, tx); err != nil {
				return err
			}
		}

		for i := range found.Lost {
			for _, id := range namesOf(&found.Lost[i]) {
				if err := records.AddLost(c.ctx, tx, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// mayLackLogs reports whether rows of session logs may be lost.
func mayLackLogs(found *dbfile.Findings) bool {
	return found.AreMoreLost || found.IsAnyOld || found.LostChanges > 0 ||
		slices.ContainsFunc(slices.Concat(found.Lost, found.Old), func(row dbfile.LostRow) bool {
			return row.Table == sessions.LogTable
		})
}

// namesOf returns the names by which requests refer to a lost row.
func namesOf(row *dbfile.LostRow) (names []string) {
	if row.Table == "contents" || row.Table == "lost" {
		return nil // the file of a content may still exist
	}
	if id, is := row.Values["id"].(string); is {
		names = append(names, id)
	}

	if hash, is := row.Values["hash"].([]byte); is && row.Table == "keys" {
		names = append(names, hex.EncodeToString(hash))
	}
	return names
}

// contents checks all files to which the rows of the database refer.
func (c *check) contents(db *sql.DB) error {
	kept, err := contents.Look(c.ctx, db, c.dir, c.isAlone && c.q != nil, c.log)
	if err != nil {
		return err
	}
	report, err := kept.Check(c.ctx, c.isDeep, c.q)
	if err != nil {
		return err
	}

	c.report.Join("", report)
	return c.events(db)
}

// events checks the events of all runs.
func (c *check) events(db *sql.DB) error {
	rows, err := records.Contents(c.ctx, db, "runs")
	if err != nil {
		return err
	}
	for i := range rows {
		if filepath.Base(rows[i].Path) != records.EventsFile {
			continue
		}
		isLost, err := records.IsLost(c.ctx, db, rows[i].Path)
		if err != nil {
			return err
		}
		if isLost {
			continue
		}
		c.report.Files++
		found, err := runs.CheckEvents(c.dir, rows[i].Path, c.q)
		if err != nil || found == nil {
			if err != nil {
				return err
			}
			continue
		}
		if c.q != nil {
			err := records.Within(c.ctx, db, func(tx *sql.Tx) error { return records.AddLost(c.ctx, tx, rows[i].Path) })
			if err != nil {
				return err
			}
		}
		c.report.Add(*found)
	}
	return nil
}

// healWait bounds the wait for other processes that use a database, such as rlm keys.
const healWait = 5 * time.Second

// heal checks whether the databases are intact, and saves the rows of damaged ones, so that a
// server can serve all intact data. It logs the damage. The caller holds the claim.
func heal(ctx context.Context, dir string, auditBytes int64, log *slog.Logger) error {
	isMissing := records.IsMissing(dir)
	isDamaged := isMissing
	for _, path := range []string{filepath.Join(Folder(dir).Store(), sqlitestore.DatabaseName), records.Path(dir)} {
		err := verify(ctx, path, log)
		if err != nil && !dbfile.IsDamage(err) {
			return err
		}
		if err != nil {
			log.Error("a database is damaged", "file", path, "error", err)
			isDamaged = true
		}
	}
	if err := sqlitestore.CheckMissing(Folder(dir).Store()); err != nil {
		isDamaged = true
	}

	if !isDamaged {
		return nil
	}

	q := damage.NewQuarantine(dir)
	c := &check{ctx: ctx, dir: dir, q: q, log: log, isAlone: true, auditBytes: auditBytes, report: &damage.Report{}}
	if err := c.all(); err != nil {
		return err
	}

	for i := range c.report.Findings {
		f := &c.report.Findings[i]
		if !f.IsNote {
			log.Error("damaged data", "what", f.What, "problem", f.Problem, "lost", f.Lost, "done", f.Done)
		}
	}

	log.Error("the rest of a damaged data folder is served: rlm store check --data "+dir+" looks at all of it",
		"findings", c.report.Count(), "copies", q.Dir())
	return nil
}

// verify compares a database with its checksums, unless other processes use it for too long.
func verify(ctx context.Context, path string, log *slog.Logger) error {
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	hold, err := dbfile.AloneWithin(ctx, path, healWait)
	var busy *dbfile.BusyError
	if errors.As(err, &busy) {
		log.Warn("a database was not verified, because another process uses it", "file", path)
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(dbfile.Verify(path), hold.Close())
}

// maxNamed is the maximum number of damaged contents that a starting server names individually.
const maxNamed = 20

// nameMissing reports contents that are missing or have the wrong size. The server serves their
// owners without them.
func nameMissing(
	ctx context.Context, kept *contents.Contents, dir string, auditBytes int64, log *slog.Logger,
) error {
	info, err := os.Stat(filepath.Join(dir, access.AuditFile))
	if auditBytes > 0 && (err != nil || info.Size() < auditBytes) {
		log.Error("the audit log lacks entries: rlm store check --data "+dir+" looks at it", "file", access.AuditFile)
	}
	all, err := kept.Missing(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	for _, d := range all[:min(len(all), maxNamed)] {
		log.Error("a content is damaged", "content", d.Path, "problem", d.Problem)
	}
	log.Error("contents are damaged: rlm store check --data "+dir+" finds what is lost, and with --repair takes it out",
		"contents", len(all))
	return nil
}
