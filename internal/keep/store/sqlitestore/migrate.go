package sqlitestore

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/dbfile"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// migrations upgrade a database of version n to version n+1. Never change a released migration:
// existing stores depend on it.
var migrations = []string{`
CREATE TABLE logs (
	id            INTEGER PRIMARY KEY,
	kind          TEXT NOT NULL,
	name          TEXT NOT NULL,
	title         TEXT NOT NULL,
	spec          BLOB NOT NULL,
	parent        TEXT NOT NULL,
	parent_turn   INTEGER NOT NULL,
	created       INTEGER NOT NULL, -- in nanoseconds
	updated       INTEGER NOT NULL,
	status        TEXT NOT NULL,
	turn          INTEGER NOT NULL,
	reason        TEXT NOT NULL,
	calls         INTEGER NOT NULL DEFAULT 0,
	input_tokens  INTEGER NOT NULL DEFAULT 0,
	output_tokens INTEGER NOT NULL DEFAULT 0,
	usd           REAL NOT NULL DEFAULT 0,
	unpriced      INTEGER NOT NULL DEFAULT 0,
	owner         TEXT NOT NULL DEFAULT '',
	epoch         INTEGER NOT NULL DEFAULT 0, -- counts the owners
	UNIQUE (kind, name)
) STRICT;
CREATE INDEX logs_by_change ON logs (kind, updated DESC);

CREATE TABLE entries (
	seq           INTEGER PRIMARY KEY AUTOINCREMENT,
	log           INTEGER NOT NULL REFERENCES logs (id) ON DELETE CASCADE,
	turn          INTEGER NOT NULL,
	kind          TEXT NOT NULL,
	key           TEXT NOT NULL,
	digest        TEXT NOT NULL,
	calls         INTEGER NOT NULL,
	input_tokens  INTEGER NOT NULL,
	output_tokens INTEGER NOT NULL,
	usd           REAL NOT NULL,
	unpriced      INTEGER NOT NULL,
	data          BLOB NOT NULL,
	sum           INTEGER NOT NULL -- see Entry.sum
) STRICT;
CREATE INDEX entries_by_turn ON entries (log, turn);
CREATE INDEX entries_by_kind ON entries (log, kind, turn);
CREATE INDEX entries_by_digest ON entries (digest) WHERE digest <> '';
`, `
ALTER TABLE logs ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0;
`, `` /* checksums of pages, see protect */}

// oldestRead is the oldest version that can be read without migration.
const oldestRead = 2

// applicationID marks the databases of this program: "rlms".
const applicationID = 0x726c6d73

// migrate upgrades a database to the version of this program.
func migrate(c *conn) error {
	version, err := checkVersion(c)
	if err != nil {
		return err
	}
	if version < len(migrations) {
		if err := upgrade(c); err != nil {
			return err
		}
	}
	return protect(c)
}

// protect adds checksums to a database of an earlier version. If that is not possible now, the next
// Open tries again.
func protect(c *conn) error {
	err := dbfile.Protect(c.Conn)
	if errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.FULL) || errors.Is(err, sqlite3.IOERR_WRITE) {
		return nil
	}
	return err
}

func upgrade(c *conn) error {
	return c.within(func() error {
		version, err := checkVersion(c) // another process may have migrated it meanwhile
		if err != nil {
			return err
		}
		for i, script := range migrations[version:] {
			if err := c.Exec(script); err != nil {
				return fmt.Errorf("cannot upgrade the store to version %d: %w", version+i+1, err)
			}
		}
		return c.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d",
			applicationID, len(migrations)))
	})
}

// checkVersion returns the version of a database, or 0 for an empty one. It refuses databases of
// other programs and of later versions.
func checkVersion(c *conn) (int, error) {
	version, err := readNumber(c, "PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	id, err := readNumber(c, "PRAGMA application_id")
	switch {
	case err != nil:
		return 0, err
	case version > len(migrations):
		return 0, fmt.Errorf("it has version %d, and this program reads up to version %d: "+
			"use the newer program, or name another folder", version, len(migrations))
	case version > 0 && id != applicationID:
		return 0, fmt.Errorf("%w: it is the database of another program", store.ErrDamaged)
	}
	return version, nil
}

// readNumber returns the number that a statement selects.
func readNumber(c *conn, sql string) (n int, err error) {
	err = c.query(sql, nil, func(row *sqlite3.Stmt) error {
		n = row.ColumnInt(0)
		return nil
	})
	return n, err
}
