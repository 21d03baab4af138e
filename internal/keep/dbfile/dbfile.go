// Package dbfile handles the files of SQLite databases. It detects damage caused by a disk, and
// salvages the intact rows.
//
// Each page has a checksum, which SQLite computes and checks: see https://sqlite.org/cksumvfs.html.
// [VFS] mixes the number of the page into it, because the checksum of a page of zeros is zero, and
// a damaged disk often returns zeros. Reading a page that differs from what was written is an
// error.
//
// SQLite stops at the first broken frame of a write-ahead log, as if no further frame had been
// written. That is correct after a power failure but wrong after damage, so [Find] compares the log
// with its index, which a killed process leaves behind.
package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/machine/flush"
)

// SQLite keeps these files next to a database.
const (
	logSuffix   = "-wal"
	indexSuffix = "-shm"
)

// Files returns the paths of a database and of the files that SQLite keeps next to it.
func Files(path string) []string {
	return []string{path, path + logSuffix, path + indexSuffix}
}

// Create creates an empty database with checksums and a write-ahead log, unless the file exists.
// The database appears atomically, so no process finds a part of it.
func Create(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		for _, name := range Files(temp.Name()) {
			_ = os.Remove(name)
		}
	}()
	if err := temp.Close(); err != nil {
		return err
	}

	c, err := sqlite3.OpenFlags(Address(temp.Name()), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return err
	}
	err = c.EnableChecksums("main")
	if err == nil {
		err = c.Exec("PRAGMA journal_mode = WAL")
	}
	if err := errors.Join(err, c.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return flush.Folder(filepath.Dir(path))
}

// Protect adds checksums to a database of an earlier version by rewriting it. It does nothing if
// the database already has them.
func Protect(c *sqlite3.Conn) error {
	if err := c.EnableChecksums("main"); err != nil {
		return fmt.Errorf("cannot add checksums to the database: %w", err)
	}
	return nil
}

// IsDamage reports whether an error of SQLite means that a database differs from what was written.
func IsDamage(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, sqlite3.IOERR_DATA) ||
		errors.Is(err, sqlite3.IOERR_CORRUPTFS) || errors.Is(err, ErrDamaged)
}

// ErrDamaged reports a database that differs from what was written.
var ErrDamaged = damage.Kind("the database is damaged")
