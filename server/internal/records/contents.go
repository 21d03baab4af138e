package records

import (
	"context"
	"database/sql"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/failures"
)

// ContentRow is the database row of a content. See package contents.
type ContentRow struct {
	Path string
	// Digest is the SHA-256. It is empty if the file contains its own checksums or is from an
	// earlier version.
	Digest []byte
	// Bytes is the size, or -1 if unknown.
	Bytes   int64
	Created time.Time
}

func scanContent(row Row) (c ContentRow, err error) {
	var created int64
	err = row.Scan(&c.Path, &c.Digest, &c.Bytes, &created)
	c.Created = ReadTime(created)
	return c, err
}

const selectContents = `SELECT path, digest, bytes, created FROM contents WHERE `

// below selects a path and everything below it.
const below = `(path = ?1 OR path > ?1 || '/' AND path < ?1 || '0')`

// AddContent adds a content, which replaces any earlier one with the same path.
func AddContent(ctx context.Context, tx *sql.Tx, path string, digest []byte, bytes int64) error {
	return addContent(ctx, tx, path, digest, bytes, time.Now())
}

// RemoveContents removes the content with a path, or all contents below a folder.
func RemoveContents(ctx context.Context, tx *sql.Tx, path string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM contents WHERE `+below, path)
	return err
}

// Content returns a content, or [sql.ErrNoRows].
func Content(ctx context.Context, db *sql.DB, path string) (ContentRow, error) {
	return scanContent(db.QueryRowContext(ctx, selectContents+`path = ?`, path))
}

// Contents returns the contents of a folder in order of creation, or all contents if the path is
// empty.
func Contents(ctx context.Context, db *sql.DB, path string) ([]ContentRow, error) {
	return List(ctx, db, scanContent, selectContents+`(?1 = '' OR `+below+`) ORDER BY created, path`, path)
}

// HasContents reports whether a path is a content, or a folder with contents.
func HasContents(ctx context.Context, db *sql.DB, path string) (has bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM contents WHERE `+below+`)`, path).Scan(&has)
	return has, err
}

// SetDigest sets the digest of a content that has none.
func SetDigest(ctx context.Context, db *sql.DB, path string, digest []byte) error {
	_, err := db.ExecContext(ctx, `UPDATE contents SET digest = ? WHERE path = ? AND digest = x''`, digest, path)
	return err
}

// AddLost records that the object with an ID or a path was lost by damage.
func AddLost(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO lost (id, found) VALUES (?, ?)`, id, Time(time.Now()))
	return err
}

// RemoveLost records that a lost object exists again.
func RemoveLost(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM lost WHERE id = ?`, id)
	return err
}

// IsLost reports whether the object with an ID or a path was lost by damage.
func IsLost(ctx context.Context, db *sql.DB, id string) (is bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM lost WHERE id = ?)`, id).Scan(&is)
	return is, err
}

// NotFound returns the client's error for a missing object, which was lost by damage, never
// existed, or belongs to another tenant.
func NotFound(ctx context.Context, db *sql.DB, what, id string) error {
	isLost, err := IsLost(ctx, db, id)
	if err != nil {
		return err
	}
	if isLost {
		return problem.New(http.StatusGone, failures.Damaged,
			"the %s %.80s was damaged on the server's disk, and is lost", what, id)
	}
	return problem.NotFound(what, id)
}
