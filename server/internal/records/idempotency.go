package records

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
)

// FindRepeated returns the ID of the object that an earlier request of the tenant with the same
// Idempotency-Key made, or "" if there is none. Digest is the digest of the request.
func FindRepeated(ctx context.Context, db *sql.DB, tenant, word string, digest []byte) (made string, err error) {
	var known []byte
	err = db.QueryRowContext(ctx, `SELECT run, digest FROM idempotency WHERE tenant = ? AND word = ?`,
		tenant, word).Scan(&made, &known)

	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err != nil:
		return "", err
	case !bytes.Equal(known, digest):
		return "", problem.New(http.StatusUnprocessableEntity, "idempotency_mismatch",
			"the Idempotency-Key %.80q belongs to another request: take a new one", word)
	}
	return made, nil
}

// AddRepeated records the object that a request with an Idempotency-Key made.
func AddRepeated(ctx context.Context, tx *sql.Tx, tenant, word string, digest []byte, made string) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO idempotency (tenant, word, digest, run, created) VALUES (?, ?, ?, ?, ?)`,
		tenant, word, digest, made, Time(time.Now()))

	if err != nil && strings.Contains(err.Error(), "UNIQUE") {
		err = problem.Later(http.StatusConflict, "idempotency_in_use", time.Second,
			"another request with this Idempotency-Key begins just now: try again")
	}
	return err
}
