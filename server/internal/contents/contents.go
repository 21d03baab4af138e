// Package contents stores data that is too large for the database of a server: uploaded files,
// contexts, and the states of sessions. Each content is a file in the data folder. Its database row
// records the SHA-256, so damaged or missing contents are noticed when they are read.
//
// A content is committed together with the rows that need it. Until then, it is [Incoming], in a
// separate folder; deleted contents are first moved to another such folder. So every file in its
// final place was once committed, and no file is ever deleted because its row is missing.
package contents

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/machine/flush"
	"github.com/rlmhq/rlm/server/internal/records"
)

// These are the folders of contents in transit.
const (
	incomingFolder = "incoming" // see [Incoming]
	outgoingFolder = "outgoing" // contents that are being deleted
)

// Contents are the contents of a data folder. Paths are relative to it, with slashes. It is safe
// for concurrent use.
type Contents struct {
	db  *sql.DB
	dir string
	log *slog.Logger

	removals sync.Mutex // held while files and rows are being removed

	mu       sync.Mutex
	incoming map[string]*Incoming // by path: not committed yet, or committed but not in its place
	known    map[string]stamp     // files that were intact when last read
}

// stamp changes when a file is changed.
type stamp struct {
	bytes    int64
	modified time.Time
}

// maxKnown is the maximum number of files in Contents.known.
const maxKnown = 10_000

// Open returns the contents of a data folder. It completes the operations that a killed process
// left unfinished.
func Open(ctx context.Context, db *sql.DB, dir string, log *slog.Logger) (*Contents, error) {
	c := newContents(db, dir, log)
	for _, name := range []string{incomingFolder, outgoingFolder} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	if err := c.settle(ctx); err != nil {
		return nil, fmt.Errorf("cannot go on with what a killed server has left: %w", err)
	}
	return c, nil
}

func newContents(db *sql.DB, dir string, log *slog.Logger) *Contents {
	return &Contents{db: db, dir: dir, log: log, incoming: map[string]*Incoming{}, known: map[string]stamp{}}
}

// Look returns the contents of a data folder for reading, even while a server uses it. If maySettle
// is set and no server uses the folder, it completes unfinished operations as Open does.
func Look(ctx context.Context, db *sql.DB, dir string, maySettle bool, log *slog.Logger) (*Contents, error) {
	if maySettle {
		return Open(ctx, db, dir, log)
	}
	return newContents(db, dir, log), nil
}

// file returns the final place of a content.
func (c *Contents) file(path string) string { return filepath.Join(c.dir, filepath.FromSlash(path)) }

// way returns the place of a content in transit.
func (c *Contents) way(folder, path string) string {
	return filepath.Join(c.dir, folder, url.PathEscape(path))
}

// Incoming is a content that was written to disk, but is not committed yet.
type Incoming struct {
	Path   string
	Digest []byte // SHA-256; nil for a file with its own checksums
	Bytes  int64
	file   string
	isNew  bool // this process wrote it
}

// Write writes a content.
func (c *Contents) Write(path string, write func(io.Writer) error) (*Incoming, error) {
	if err := c.finish(path); err != nil {
		return nil, err
	}
	d := &Incoming{Path: path, file: c.way(incomingFolder, path), isNew: true}
	file, err := os.OpenFile(d.file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}

	sum := sha256.New()
	counted := &counter{to: io.MultiWriter(file, sum)}
	err = write(counted)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(d.file))
	}

	d.Digest, d.Bytes = sum.Sum(nil), counted.n
	c.remember(d)
	return d, nil
}

// finish completes an earlier content that is still in transit, because the disk had no room or
// because it is unknown whether the content is committed. This content may be the only committed
// one at its path.
func (c *Contents) finish(path string) error {
	c.mu.Lock()
	d := c.incoming[path]
	c.mu.Unlock()
	if d == nil {
		return nil
	}

	row, err := records.Content(context.Background(), c.db, path)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !bytes.Equal(row.Digest, d.Digest):
		c.Drop([]*Incoming{d})
		return nil
	case err != nil:
		return err
	}
	return c.place(d)
}

// counter counts the bytes that are written.
type counter struct {
	to io.Writer
	n  int64
}

// Write implements [io.Writer].
func (c *counter) Write(data []byte) (int, error) {
	n, err := c.to.Write(data)
	c.n += int64(n)
	return n, err
}

// WriteSelfChecked is like Write, for a file that will change and that contains its own checksums.
func (c *Contents) WriteSelfChecked(path string, write func(io.Writer) error) (*Incoming, error) {
	d, err := c.Write(path, write)
	if err == nil {
		d.Digest, d.Bytes, d.isNew = nil, -1, false
	}
	return d, err
}

// Copy writes a copy of a content. Both share a file on disk if possible.
func (c *Contents) Copy(ctx context.Context, from, path string) (*Incoming, error) {
	if err := c.finish(path); err != nil {
		return nil, err
	}
	row, err := c.row(ctx, from)
	if err != nil {
		return nil, err
	}
	d := &Incoming{Path: path, Digest: row.digest, Bytes: row.Bytes, file: c.way(incomingFolder, path)}
	err = os.Link(row.file, d.file)
	switch {
	case errors.Is(err, fs.ErrExist): // an earlier copy was dropped
		return nil, errors.Join(err, os.Remove(d.file))
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DamageError{from, "it is missing"}
	case err != nil: // the disk does not support links
		content, err := c.Read(ctx, from)
		if err != nil {
			return nil, err
		}
		defer content.Close()
		return c.Write(path, func(w io.Writer) error {
			_, err := io.Copy(w, content)
			return err
		})
	}

	c.remember(d)
	return d, nil
}

func (c *Contents) remember(d *Incoming) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.incoming[d.Path] = d
}

// Keep commits written contents in one transaction with work. After an error, it drops them.
func (c *Contents) Keep(ctx context.Context, all []*Incoming, work func(*sql.Tx) error) error {
	if len(all) > 0 {
		if err := flush.Folder(filepath.Join(c.dir, incomingFolder)); err != nil {
			c.Drop(all)
			return err
		}
	}

	isDone := false // all work is done, so an error comes from the commit
	err := records.Within(ctx, c.db, func(tx *sql.Tx) error {
		for _, d := range all {
			if err := records.AddContent(ctx, tx, d.Path, d.Digest, d.Bytes); err != nil {
				return err
			}
		}
		err := work(tx)
		isDone = err == nil
		return err
	})
	switch {
	case err != nil && isDone && len(all) > 0: // it may be committed; the next start finds out
		return err
	case err != nil:
		c.Drop(all)
		return err
	}

	for _, d := range all {
		if err := c.place(d); err != nil {
			c.log.Warn("a content stays where it was written", "content", d.Path, "error", err)
		}
	}
	return nil
}

// place moves a committed content to its final place.
func (c *Contents) place(d *Incoming) error {
	to := c.file(d.Path)
	err := os.Rename(d.file, to)
	if errors.Is(err, fs.ErrNotExist) { // the target folder does not exist
		if err = os.MkdirAll(filepath.Dir(to), 0o700); err == nil {
			err = os.Rename(d.file, to)
		}
	}
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.incoming, d.Path)
	if info, err := os.Stat(to); err == nil && d.isNew {
		c.know(d.Path, info)
	}
	return nil
}

// know records that a file is intact. The caller holds mu.
func (c *Contents) know(path string, info fs.FileInfo) {
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	c.known[path] = stamp{info.Size(), info.ModTime()}
}

// Drop deletes written contents that are not committed.
func (c *Contents) Drop(all []*Incoming) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range all {
		if c.incoming[d.Path] == d {
			delete(c.incoming, d.Path)
			_ = os.Remove(d.file) // if this fails, the next start does it
		}
	}
}

// Remove deletes a content, or a folder of contents, in one transaction with work.
func (c *Contents) Remove(ctx context.Context, path string, work func(*sql.Tx) error) error {
	c.removals.Lock()
	defer c.removals.Unlock()
	from, way := c.file(path), c.way(outgoingFolder, path)
	moved := os.Rename(from, way)
	if moved != nil && !errors.Is(moved, fs.ErrNotExist) {
		return moved
	}

	err := records.Within(ctx, c.db, func(tx *sql.Tx) error {
		if err := work(tx); err != nil {
			return err
		}
		return records.RemoveContents(ctx, tx, path)
	})
	if err != nil {
		if moved == nil {
			err = errors.Join(err, os.Rename(way, from))
		}
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.incoming {
		if name == path || strings.HasPrefix(name, path+"/") {
			_ = os.Remove(c.incoming[name].file)
			delete(c.incoming, name)
		}
	}
	return os.RemoveAll(way)
}

// settle completes the operations on contents that a killed process left in transit.
func (c *Contents) settle(ctx context.Context) error {
	err := c.each(incomingFolder, func(path, way string) error {
		row, err := records.Content(ctx, c.db, path)
		if errors.Is(err, sql.ErrNoRows) {
			return os.Remove(way)
		}
		if err != nil {
			return err
		}
		isNewer, err := c.isNewer(&row, path, way)
		if err != nil {
			return err
		}
		if !isNewer {
			return os.Remove(way)
		}
		return c.place(&Incoming{Path: path, Digest: row.Digest, file: way})
	})
	if err != nil {
		return err
	}

	return c.each(outgoingFolder, func(path, way string) error {
		has, err := records.HasContents(ctx, c.db, path)
		if err != nil {
			return err
		}
		if !has {
			return os.RemoveAll(way)
		}
		if _, err := os.Lstat(c.file(path)); !errors.Is(err, fs.ErrNotExist) {
			return os.RemoveAll(way) // there is another content in its place
		}
		return os.Rename(way, c.file(path))
	})
}

// isNewer reports whether an incoming content matches its row while the file in the final place
// does not.
func (c *Contents) isNewer(row *records.ContentRow, path, way string) (bool, error) {
	if len(row.Digest) == 0 { // it has its own checksums, and was complete before the move
		_, err := os.Lstat(c.file(path))
		return errors.Is(err, fs.ErrNotExist), nil
	}
	sum, err := digestOf(way)
	return bytes.Equal(sum, row.Digest), err
}

// each calls f for each content in transit in a folder.
func (c *Contents) each(folder string, f func(path, way string) error) error {
	entries, err := os.ReadDir(filepath.Join(c.dir, folder))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path, err := url.PathUnescape(entry.Name())
		way := filepath.Join(c.dir, folder, entry.Name())
		if err != nil || !filepath.IsLocal(filepath.FromSlash(path)) {
			err = os.RemoveAll(way) // the file is not one of ours
		} else {
			err = f(path, way)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func digestOf(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return sum.Sum(nil), err
}
