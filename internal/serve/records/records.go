// Package records is the database of a server: keys, runs, files, responses and spending. The
// packages that own these tables query it.
//
// It is one SQLite file in the data folder, which several processes may use at a time: rlm
// keys works beside a running server.
package records

import (
	"context"
	"database/sql"
	_ "embed" // the tables
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver" // registers "sqlite3"
)

// The database has a folder of its own, which hides the files that SQLite makes beside it.
const (
	folder = "records"
	file   = "serve.db"
)

//go:embed tables.sql
var tables string

// version is that of the tables. A newer program upgrades them, an older one refuses them.
const version = 3

// upgrades bring the tables of each version, the first at 1, to the next one.
var upgrades = []string{
	"ALTER TABLE spending ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0;",
	"", // sessions, a table that is made if it is missing
}

// Open opens the database of a data folder and makes both if necessary. Only the user can
// read them.
func Open(ctx context.Context, dir string) (*sql.DB, error) {
	db, err := open(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the data folder %s: %w", dir, err)
	}
	return db, nil
}

func open(ctx context.Context, dir string) (*sql.DB, error) {
	dir = filepath.Join(dir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, file)
	if err := createFile(path); err != nil {
		return nil, err
	}

	address := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)", "foreign_keys(on)"},
	}.Encode()}
	db, err := sql.Open("sqlite3", address.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)

	if err := migrate(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// createFile makes the file with its permissions, because SQLite would make it readable to
// others.
func createFile(path string) error {
	created, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		info, err := os.Lstat(path)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", path)
		}
		return err
	}

	if err != nil {
		return err
	}
	return created.Close()
}

func migrate(ctx context.Context, db *sql.DB) error {
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
		_, err := tx.ExecContext(ctx, script+fmt.Sprintf("PRAGMA user_version = %d;", version))
		return err
	})
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

// Time returns a time as the tables have it, in nanoseconds; 0 for none.
func Time(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// ReadTime is the reverse of Time.
func ReadTime(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Used returns the bytes of all files and sessions of a tenant.
func Used(ctx context.Context, db *sql.DB, tenant string) (bytes int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT
		(SELECT coalesce(sum(bytes), 0) FROM files WHERE tenant = ?1) +
		(SELECT coalesce(sum(bytes), 0) FROM sessions WHERE tenant = ?1)`, tenant).Scan(&bytes)
	return bytes, err
}
