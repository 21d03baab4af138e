// Package records is the database of a server: keys, runs, files, responses and spending. The
// packages that own these tables query it.
//
// It is one SQLite file in the data folder. Several processes may use it at the same time, so rlm
// keys works while a server runs.
package records

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed" // the tables
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	sqlitedriver "github.com/ncruces/go-sqlite3/driver"

	"github.com/rlmhq/rlm/internal/keep/dbfile"
)

// The database has its own folder, which also contains the files that SQLite creates next to it.
const (
	folder = "records"
	file   = "serve.db"
)

//go:embed tables.sql
var tables string

// version is the version of the tables. A newer program upgrades them, an older one refuses them.
const version = 6

// upgrades contains the statements that upgrade the tables from each version to the next; the first
// is for version 1.
var upgrades = []string{
	"ALTER TABLE spending ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0;",
	"", // sessions, a table that is created if missing
	"", // contents and lost, tables that are created, and checksums of pages
	"", // conversations, tables that are created if missing
	"", // session_log, a table that is created if missing
}

// Open opens the database of a data folder and creates both if necessary. Only the user can read
// them.
func Open(ctx context.Context, dir string) (*sql.DB, error) {
	db, err := open(ctx, dir)
	if err != nil {
		err = fmt.Errorf("cannot open the data folder %s: %w", dir, err)
		if dbfile.IsDamage(err) {
			err = fmt.Errorf(
				"%w: rlm store check --data %s says what is lost, and with --repair saves the rest",
				err, dir,
			)
		}
		return nil, err
	}
	return db, nil
}

func open(ctx context.Context, dir string) (_ *sql.DB, err error) {
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
		return nil, err
	}
	path := Path(dir)
	hold, err := dbfile.Use(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, hold.Close())
		}
	}()
	if err := prepare(dir, path); err != nil {
		return nil, err
	}

	// Deleted data is overwritten, so that a page contains no remains of deleted rows.
	address := dbfile.Address(path, "_txlock", "immediate", "_pragma", "busy_timeout(10000)",
		"_pragma", "journal_mode(wal)", "_pragma", "synchronous(full)", "_pragma", "foreign_keys(on)",
		"_pragma", "secure_delete(on)")
	connect, err := (&sqlitedriver.SQLite{}).OpenConnector(address)
	if err != nil {
		return nil, err
	}

	db := sql.OpenDB(&held{connect, hold})
	db.SetMaxOpenConns(4)

	if err := migrate(ctx, db, dir); err != nil {
		_ = db.Close() // also closes hold
		hold = nil
		return nil, err
	}
	return db, nil
}

// Path returns the database file in a data folder.
func Path(dir string) string { return filepath.Join(dir, folder, file) }

// held is a connector that releases its hold when the database is closed.
type held struct {
	driver.Connector
	hold *dbfile.Hold
}

// Close implements [io.Closer].
func (h *held) Close() error { return h.hold.Close() }

// prepare creates the file of the database, with checksums.
func prepare(dir, path string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if IsMissing(dir) {
		return fmt.Errorf("%w: %s is missing", dbfile.ErrDamaged, path)
	}
	if err := dbfile.Create(path); err != nil {
		return err
	}

	c, err := sqlite3.OpenFlags(dbfile.Address(path), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return err
	}
	// A database of an earlier version gets checksums as soon as possible.
	if err = dbfile.Protect(c); errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.FULL) {
		err = nil
	}
	return errors.Join(err, c.Close())
}

// IsMissing reports whether a data folder has lost its database: there is none, although the folder
// contains data.
func IsMissing(dir string) bool {
	if _, err := os.Lstat(Path(dir)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for _, name := range []string{"files/*", "runs/*", "sessions/*", "audit.jsonl"} {
		if found, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(name))); len(found) > 0 { // it is valid
			return true
		}
	}
	return false
}

func migrate(ctx context.Context, db *sql.DB, dir string) error {
	var have int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	switch {
	case have == version:
		return nil
	case have > version:
		return fmt.Errorf("%s has version %d, this program knows %d: use a newer rlm", file, have, version)
	}

	return Within(ctx, db, func(tx *sql.Tx) error {
		script := tables
		if have > 0 {
			script = strings.Join(upgrades[have-1:], "") + tables
		}
		if _, err := tx.ExecContext(ctx, script+fmt.Sprintf("PRAGMA user_version = %d;", version)); err != nil {
			return err
		}
		if have > 0 && have < withContents {
			return enter(ctx, tx, dir)
		}
		return nil
	})
}

// CreateEmpty creates an empty database, for the rows of a damaged one.
func CreateEmpty(path string) error {
	if err := dbfile.Create(path); err != nil {
		return err
	}
	c, err := sqlite3.OpenFlags(dbfile.Address(path), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return err
	}
	return errors.Join(c.Exec(tables+fmt.Sprintf("PRAGMA user_version = %d;", version)), c.Close())
}

// Within runs work in a transaction.
func Within(ctx context.Context, db *sql.DB, work func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Time returns a time in the format of the tables: nanoseconds, or 0 for the zero time.
func Time(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// ReadTime is the inverse of Time.
func ReadTime(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Used returns the size in bytes of all files, sessions and conversations of a tenant.
func Used(ctx context.Context, db *sql.DB, tenant string) (bytes int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT
		(SELECT coalesce(sum(bytes), 0) FROM files WHERE tenant = ?1) +
		(SELECT coalesce(sum(bytes), 0) FROM sessions WHERE tenant = ?1) +
		(SELECT coalesce(sum(bytes), 0) FROM conversations WHERE tenant = ?1)`, tenant).Scan(&bytes)
	return bytes, err
}
