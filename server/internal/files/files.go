// Package files stores clients' uploads. A file never changes.
package files

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// File is an uploaded file.
type File struct {
	ID, Tenant, Name, Purpose string
	Bytes                     int64
	Created                   time.Time
}

// Files are the files of all tenants. It is safe for concurrent use.
type Files struct {
	db       *sql.DB
	contents *contents.Contents
	quota    *records.Quota
	max      int64 // maximum size of one file, in bytes
}

// New returns the files of a server.
func New(db *sql.DB, c *contents.Contents, quota *records.Quota, maxBytes int64) *Files {
	return &Files{db, c, quota, maxBytes}
}

// Path returns the path of a file's content.
func (f *Files) Path(id string) string { return "files/" + id }

// Open opens the content of a file. The error is for the client.
func (f *Files) Open(ctx context.Context, id string) (*os.File, error) {
	file, err := f.contents.File(ctx, f.Path(id))
	return file, AsProblem(err, id)
}

// AsProblem converts an error about a file's content for the client.
func AsProblem(err error, id string) error {
	var damaged *contents.DamageError
	if errors.As(err, &damaged) {
		return problem.New(http.StatusGone, failures.Damaged, "the file %s is damaged on the server's disk: %s: "+
			"upload it again", id, damaged.Problem)
	}
	return err
}

// maxText bounds the name and the purpose of a file, in bytes.
const maxText = 512

// Create stores a stream as a file of a tenant. The tenant's files and sessions, including
// concurrent uploads, may have quota bytes together; 0 means no bound. If the stream is
// interrupted, nothing is stored.
func (f *Files) Create(
	ctx context.Context, tenant, name, purpose string, content io.Reader, quota int64,
) (file File, err error) {
	if name == "" || len(name) > maxText || len(purpose) > maxText {
		return file, problem.Bad("file", "give a file with a name, and a purpose, of at most %d bytes", maxText)
	}
	file = File{
		ID: runs.NewID("file-"), Tenant: tenant, Name: name, Purpose: purpose, Created: time.Now().UTC(),
	}
	arriving := &arrival{ctx: ctx, from: content, left: f.max, quota: f.quota.Arrive(tenant, quota)}
	defer arriving.quota.Abort()
	written, err := f.contents.Write(f.Path(file.ID), func(w io.Writer) error {
		n, err := io.Copy(w, arriving)
		if err == nil && n == 0 {
			err = problem.Bad("file", "the file is empty")
		}
		return err
	})
	if err != nil {
		return file, err
	}

	file.Bytes = written.Bytes
	return file, arriving.quota.Finish(func() error {
		return f.contents.Keep(ctx, []*contents.Incoming{written}, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx,
				`INSERT INTO files (id, tenant, name, purpose, bytes, created) VALUES (?, ?, ?, ?, ?, ?)`,
				file.ID, tenant, name, purpose, file.Bytes, records.Time(file.Created))
			return err
		})
	})
}

// arrival is a stream whose bytes count against the quota as they arrive.
type arrival struct {
	ctx   context.Context //nolint:containedctx // the context of one upload
	from  io.Reader
	count int64
	left  int64
	quota *records.Arrival
}

// Read implements [io.Reader]. It fails if the bytes exceed a bound.
func (a *arrival) Read(data []byte) (int, error) {
	n, err := a.from.Read(data)
	if a.left -= int64(n); a.left < 0 {
		return 0, tooLarge(a.count + a.left + int64(n))
	}
	a.count += int64(n)
	if grown := a.quota.Grow(a.ctx, a.count); grown != nil {
		var known *problem.Error
		if errors.As(grown, &known) {
			grown = tooLarge(a.count - int64(n))
		}
		return 0, grown
	}
	return n, err
}

func tooLarge(most int64) error {
	return problem.New(http.StatusRequestEntityTooLarge, "file_too_large",
		"the file has more than %d bytes, which are left for it: delete others, or send less", max(most, 0))
}

const columns = `SELECT id, tenant, name, purpose, bytes, created FROM files WHERE tenant = ? `

func scan(row records.Row) (file File, err error) {
	var created int64
	err = row.Scan(&file.ID, &file.Tenant, &file.Name, &file.Purpose, &file.Bytes, &created)
	file.Created = records.ReadTime(created)
	return file, err
}

// Get returns a file of a tenant.
func (f *Files) Get(ctx context.Context, tenant, id string) (File, error) {
	file, err := scan(f.db.QueryRowContext(ctx, columns+`AND id = ?`, tenant, id))
	if errors.Is(err, sql.ErrNoRows) {
		return file, records.NotFound(ctx, f.db, "file", id)
	}
	return file, err
}

// List returns files of a tenant after the one with the given ID, latest first.
func (f *Files) List(ctx context.Context, tenant, purpose, after string, limit int) (all []File, err error) {
	last := File{Created: time.Unix(0, 1<<62)}
	if after != "" {
		if last, err = f.Get(ctx, tenant, after); err != nil {
			return nil, err
		}
	}

	at := records.Time(last.Created)
	return records.List(ctx, f.db, scan, columns+`AND (? = '' OR purpose = ?)
		AND (created < ? OR created = ? AND id > ?) ORDER BY created DESC, id LIMIT ?`,
		tenant, purpose, purpose, at, at, last.ID, limit)
}

// Delete deletes a file of a tenant. Runs that have begun keep it.
func (f *Files) Delete(ctx context.Context, tenant, id string) error {
	if _, err := f.Get(ctx, tenant, id); err != nil {
		return err
	}
	return f.contents.Remove(ctx, f.Path(id), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM files WHERE tenant = ? AND id = ?`, tenant, id)
		return err
	})
}

// SetPurpose changes the purpose of a file.
func (f *Files) SetPurpose(ctx context.Context, file *File, purpose string) error {
	file.Purpose = purpose
	_, err := f.db.ExecContext(ctx, `UPDATE files SET purpose = ? WHERE id = ?`, purpose, file.ID)
	return err
}
