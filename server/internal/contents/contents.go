// Package contents keeps what is too large for the database of a server: uploaded files, contexts,
// and the states of sessions. Each is a file of the data folder, and a row of the database has its
// SHA-256. So a content that is damaged or missing is noticed when it is read.
//
// A content becomes one together with the rows that need it. Before, it is [Incoming], in a folder of
// its own; what is deleted leaves through another such folder. So every file in its place has been
// confirmed, and nothing is ever deleted because its row is missing.
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

	"github.com/rlmhq/rlm/server/internal/records"
)

// The folders of contents on their way.
const (
	incomingFolder = "incoming" // see [Incoming]
	outgoingFolder = "outgoing" // what is being deleted
)

// Contents are those of a data folder. Paths are below it, with slashes. It is safe for concurrent
// use.
type Contents struct {
	db  *sql.DB
	dir string
	log *slog.Logger

	removals sync.Mutex // held while something goes out of its place and its rows

	mu       sync.Mutex
	incoming map[string]*Incoming // by paths: that were not kept yet, or whose file is not in its place
	known    map[string]stamp     // files that were whole when they were read last
}

// stamp tells a file from the same one after a change.
type stamp struct {
	bytes    int64
	modified time.Time
}

// maxKnown bounds the files that are known to be whole.
const maxKnown = 10_000

// Open returns the contents of a data folder. It brings what a killed process has left to its end.
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

// Look returns the contents of a data folder to look at them, also while a server uses it. If none
// does, it may bring what a killed process has left to its end, as Open does.
func Look(ctx context.Context, db *sql.DB, dir string, maySettle bool, log *slog.Logger) (*Contents, error) {
	if maySettle {
		return Open(ctx, db, dir, log)
	}
	return newContents(db, dir, log), nil
}

// file returns where a content is.
func (c *Contents) file(path string) string { return filepath.Join(c.dir, filepath.FromSlash(path)) }

// way returns where a content is on its way.
func (c *Contents) way(folder, path string) string {
	return filepath.Join(c.dir, folder, url.PathEscape(path))
}

// Incoming is a content that was written, and is on the disk, but does not count yet.
type Incoming struct {
	Path   string
	Digest []byte // SHA-256, nil for a file that checks itself
	Bytes  int64
	file   string
	isNew  bool // this process has written it
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

// finish brings an earlier content to its end that is still on its way: the disk had no place for it,
// or nobody knows whether it counts. It may be the only one that does.
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

// counter counts the bytes that pass.
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

// WriteSelfChecked is Write for a file that changes later, and that checks itself.
func (c *Contents) WriteSelfChecked(path string, write func(io.Writer) error) (*Incoming, error) {
	d, err := c.Write(path, write)
	if err == nil {
		d.Digest, d.Bytes, d.isNew = nil, -1, false
	}
	return d, err
}

// Copy writes a content that another one has, too. Both share a file on the disk, if they can.
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
	case errors.Is(err, fs.ErrExist): // of one that was dropped
		return nil, errors.Join(err, os.Remove(d.file))
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DamageError{from, "it is missing"}
	case err != nil: // the disk has no links
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

// Keep makes what was written count, in one transaction with work. After an error, it is dropped.
func (c *Contents) Keep(ctx context.Context, all []*Incoming, work func(*sql.Tx) error) error {
	if len(all) > 0 {
		if err := syncFolder(filepath.Join(c.dir, incomingFolder)); err != nil {
			c.Drop(all)
			return err
		}
	}

	isDone := false // all of the work, so an error is one of the commit
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
	case err != nil && isDone && len(all) > 0: // it may count: the next start knows
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

// place moves a content that counts to its place.
func (c *Contents) place(d *Incoming) error {
	to := c.file(d.Path)
	err := os.Rename(d.file, to)
	if errors.Is(err, fs.ErrNotExist) { // the folder
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

// know remembers that a file is whole. The caller holds mu.
func (c *Contents) know(path string, info fs.FileInfo) {
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	c.known[path] = stamp{info.Size(), info.ModTime()}
}

// Drop deletes what was written and does not count.
func (c *Contents) Drop(all []*Incoming) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range all {
		if c.incoming[d.Path] == d {
			delete(c.incoming, d.Path)
			_ = os.Remove(d.file) // the next start does it otherwise
		}
	}
}

// Remove deletes a content, or the folder of several, in one transaction with work.
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

// settle brings to its end what a killed process has left on its way.
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
			return os.RemoveAll(way) // another one is in its place
		}
		return os.Rename(way, c.file(path))
	})
}

// isNewer reports whether an incoming content is what its row says, and the file in its place is not.
func (c *Contents) isNewer(row *records.ContentRow, path, way string) (bool, error) {
	if len(row.Digest) == 0 { // one that checks itself: it was written before it had its place
		_, err := os.Lstat(c.file(path))
		return errors.Is(err, fs.ErrNotExist), nil
	}
	sum, err := digestOf(way)
	return bytes.Equal(sum, row.Digest), err
}

// each calls f with the path of everything on its way in a folder.
func (c *Contents) each(folder string, f func(path, way string) error) error {
	entries, err := os.ReadDir(filepath.Join(c.dir, folder))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path, err := url.PathUnescape(entry.Name())
		way := filepath.Join(c.dir, folder, entry.Name())
		if err != nil || !filepath.IsLocal(filepath.FromSlash(path)) {
			err = os.RemoveAll(way) // nothing of ours
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

// syncFolder makes the names in a folder durable. Not every system can do that.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = f.Sync()
	return f.Close()
}
