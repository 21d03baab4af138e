package contents

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/server/internal/records"
)

// DamageError reports that a content differs from what was written.
type DamageError struct {
	Path string
	// Problem describes the damage, such as "it is missing".
	Problem string
}

// Error describes the damage and names the file.
func (e *DamageError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.Path, e.Problem) }

// Is implements the interface of [errors.Is].
func (e *DamageError) Is(target error) bool { return target == damage.Err }

// IsThere reports whether a part of the content exists.
func (e *DamageError) IsThere() bool { return e.Problem != missing && e.Problem != unknown }

const (
	missing = "it is missing"
	unknown = "nothing is known of it"
)

// notWritten is the problem of a content that does not match its digest.
const notWritten = "it is not what was written"

// found is a content in its final place or in transit.
type found struct {
	file   string
	digest []byte
	Bytes  int64
}

// row finds the row of a content.
func (c *Contents) row(ctx context.Context, path string) (found, error) {
	c.mu.Lock()
	d := c.incoming[path]
	c.mu.Unlock()
	if d != nil {
		return found{d.file, d.Digest, d.Bytes}, nil
	}

	row, err := records.Content(ctx, c.db, path)
	if errors.Is(err, sql.ErrNoRows) {
		return found{}, &DamageError{path, unknown}
	}
	return found{c.file(path), row.Digest, row.Bytes}, err
}

// Content is a content being read. It is checked at its end, so the last Read fails if it is
// damaged.
type Content struct {
	// Path is the path of the content; Bytes is its size.
	Path  string
	Bytes int64

	file   *os.File
	sum    hash.Hash
	digest []byte // empty if unknown
	atEnd  func(digest []byte)
}

// Read opens a content for reading from beginning to end.
func (c *Contents) Read(ctx context.Context, path string) (*Content, error) {
	row, err := c.row(ctx, path)
	if err != nil {
		return nil, err
	}

	file, err := os.Open(row.file)
	if errors.Is(err, fs.ErrNotExist) { // a killed server may not have moved it to its place
		file, err = os.Open(c.way(incomingFolder, path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &DamageError{path, missing}
	}
	if err != nil {
		return nil, err
	}

	info, err := file.Stat()
	if err == nil && row.Bytes >= 0 && info.Size() != row.Bytes {
		err = &DamageError{path, otherSize(info.Size(), row.Bytes)}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}

	return &Content{path, info.Size(), file, sha256.New(), row.digest, func(digest []byte) {
		if len(row.digest) == 0 { // written by an earlier version, and accepted unchecked
			if err := records.SetDigest(context.WithoutCancel(ctx), c.db, path, digest); err != nil {
				c.log.Warn("cannot keep a digest", "content", path, "error", err)
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.know(path, info)
	}}, nil
}

// Read implements [io.Reader].
func (r *Content) Read(data []byte) (int, error) {
	n, err := r.file.Read(data)
	_, _ = r.sum.Write(data[:n]) // never fails
	if errors.Is(err, io.EOF) && r.atEnd != nil {
		digest := r.sum.Sum(nil)
		if len(r.digest) > 0 && !bytes.Equal(digest, r.digest) {
			return n, &DamageError{r.Path, notWritten}
		}
		r.atEnd(digest)
		r.atEnd = nil
	}
	return n, err
}

// Close implements [io.Closer].
func (r *Content) Close() error { return r.file.Close() }

// File returns the file of a content after checking that it is intact. It reads the file only once
// after each change.
func (c *Contents) File(ctx context.Context, path string) (*os.File, error) {
	content, err := c.Read(ctx, path)
	if err != nil {
		return nil, err
	}

	if !c.isKnown(content) {
		_, err = io.Copy(io.Discard, content)
	}
	if err == nil {
		_, err = content.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, content.Close())
	}
	return content.file, nil
}

func (c *Contents) isKnown(content *Content) bool {
	info, err := content.file.Stat()
	c.mu.Lock()
	defer c.mu.Unlock()
	at, is := c.known[content.Path]
	return err == nil && is && at.bytes == info.Size() && at.modified.Equal(info.ModTime())
}
