// Package files keeps what clients upload, one file on the disk for each. A file never changes.
package files

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rlmhq/rlm/internal/serve/problem"
	"github.com/rlmhq/rlm/internal/serve/records"
	"github.com/rlmhq/rlm/internal/serve/runs"
)

// File is an uploaded file.
type File struct {
	ID, Tenant, Name, Purpose string
	Bytes                     int64
	Created                   time.Time
}

// Files are the files of all tenants. It is safe for concurrent use.
type Files struct {
	db  *sql.DB
	dir string
	max int64 // bytes of one file
}

// Open returns the files of a folder.
func Open(db *sql.DB, dir string, maxBytes int64) (*Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Files{db, dir, maxBytes}, nil
}

// Path returns where the content of a file is.
func (f *Files) Path(id string) string { return filepath.Join(f.dir, id) }

// maxText bounds the name and the purpose of a file, in bytes.
const maxText = 512

// Create keeps a stream as a file of a tenant, whose files and sessions may have quota bytes
// together; 0 is no bound. A stream that breaks leaves nothing.
func (f *Files) Create(
	ctx context.Context, tenant, name, purpose string, content io.Reader, quota int64,
) (file File, err error) {
	if name == "" || len(name) > maxText || len(purpose) > maxText {
		return file, problem.Bad("file", "give a file with a name, and a purpose, of at most %d bytes", maxText)
	}
	left := f.max
	if quota > 0 {
		used, err := records.Used(ctx, f.db, tenant)
		if err != nil {
			return file, err
		}
		left = min(left, quota-used)
	}

	file = File{
		ID: runs.NewID("file-"), Tenant: tenant, Name: name, Purpose: purpose, Created: time.Now().UTC(),
	}
	if file.Bytes, err = f.write(file.ID, content, left); err != nil {
		return file, err
	}
	_, err = f.db.ExecContext(ctx,
		`INSERT INTO files (id, tenant, name, purpose, bytes, created) VALUES (?, ?, ?, ?, ?, ?)`,
		file.ID, tenant, name, purpose, file.Bytes, records.Time(file.Created))
	if err != nil {
		return file, errors.Join(err, os.Remove(f.Path(file.ID)))
	}
	return file, nil
}

// write writes a stream to the disk before a row names it.
func (f *Files) write(id string, content io.Reader, left int64) (n int64, err error) {
	target, err := os.OpenFile(f.Path(id), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(target, io.LimitReader(content, max(left, 0)+1))
	if err == nil && n > left {
		err = problem.New(http.StatusRequestEntityTooLarge, "file_too_large",
			"the file has more than %d bytes, which are left for it: delete others, or send less", max(left, 0))
	}
	if err == nil && n == 0 {
		err = problem.Bad("file", "the file is empty")
	}
	if err == nil {
		err = target.Sync()
	}

	if err = errors.Join(err, target.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(f.Path(id)))
	}
	return n, nil
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
		return file, problem.NotFound("file", id)
	}
	return file, err
}

// List returns files of a tenant behind the one with an ID, the latest first.
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
	if _, err := f.db.ExecContext(ctx, `DELETE FROM files WHERE tenant = ? AND id = ?`, tenant, id); err != nil {
		return err
	}
	return os.Remove(f.Path(id))
}

// SetPurpose changes the purpose of a file.
func (f *Files) SetPurpose(ctx context.Context, file *File, purpose string) error {
	file.Purpose = purpose
	_, err := f.db.ExecContext(ctx, `UPDATE files SET purpose = ? WHERE id = ?`, purpose, file.ID)
	return err
}
