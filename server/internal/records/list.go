package records

import (
	"context"
	"database/sql"
	"errors"
)

// Row is a row of a table.
type Row interface {
	Scan(into ...any) error
}

// List returns the rows that a query finds, or nil if there are none. Scan reads one row.
func List[T any](
	ctx context.Context, db *sql.DB, scan func(Row) (T, error), query string, args ...any,
) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()

	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
