// Package folder keeps objects as files of a folder, compressed by zstd.
//
// The object abcd… is the file ab/abcd…. A file appears with all of its bytes, and it is on the
// disk before Put returns. Standard tools can read it: zstd -dc ab/abcd….
package folder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/machine/flush"
)

// Store keeps objects in a folder. It implements [objects.Store].
type Store struct {
	dir     string
	lasting sync.Map // the folders whose names this process has made durable
}

var _ objects.Store = (*Store)(nil)

// Open opens the store in a folder. It creates the folder, for the user alone, if there is none.
func Open(dir string) (*Store, error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the folder of objects %q: %w", dir, err)
	}
	if err := os.MkdirAll(whole, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of objects: %w", err)
	}
	if err := flush.Folder(filepath.Dir(whole)); err != nil {
		return nil, fmt.Errorf("cannot make the folder of objects durable: %w", err)
	}
	return &Store{dir: whole}, nil
}

// shard returns the subfolder of an object, and path its file.
func (s *Store) shard(digest string) string { return filepath.Join(s.dir, digest[:2]) }
func (s *Store) path(digest string) string  { return filepath.Join(s.shard(digest), digest) }

// Put implements [objects.Store]. It needs space for the object even if the object exists, because
// the digest is known only at the end. An existing object that is damaged is replaced.
func (s *Store) Put(ctx context.Context, from io.Reader) (objects.Object, error) {
	o, err := s.put(ctx, from)
	if err != nil {
		return objects.Object{}, fmt.Errorf("cannot store an object in %q: %w", s.dir, err)
	}
	return o, nil
}

func (s *Store) put(ctx context.Context, from io.Reader) (o objects.Object, err error) {
	temp, err := os.CreateTemp(s.dir, tempPrefix+"*") // with mode 0600
	if err != nil {
		return o, err
	}
	isMoved := false
	defer func() {
		_ = temp.Close() // when it counts, it is closed before
		if !isMoved {
			_ = os.Remove(temp.Name())
		}
	}()

	if o, err = pack(ctx, temp, from); err != nil {
		return o, err
	}
	if err := s.makeShard(s.shard(o.Digest)); err != nil {
		return o, err
	}
	isRenewed, err := s.renew(temp, o.Digest)
	if err != nil {
		return o, err
	}
	if !isRenewed {
		if err := errors.Join(temp.Sync(), temp.Close()); err != nil {
			return o, err
		}
		if err := os.Rename(temp.Name(), s.path(o.Digest)); err != nil {
			return o, err
		}
		isMoved = true
	}

	// Even if the object existed: the process that wrote it may not have come this far.
	if err := flush.Folder(s.shard(o.Digest)); err != nil {
		return o, err
	}
	o, err = s.stat(o.Digest)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: it was removed in the meantime", objects.ErrNotFound)
	}
	return o, err
}

// renew sets the time of an existing object to now. It reports whether there is an object with
// exactly the bytes of the new file.
func (s *Store) renew(temp *os.File, digest string) (bool, error) {
	file, err := openPlain(s.path(digest))
	if err != nil {
		return false, nil // the new file replaces whatever is there
	}
	defer file.Close()

	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	if !isSame(temp, file) {
		return false, nil
	}

	err = os.Chtimes(s.path(digest), time.Time{}, time.Now())
	if errors.Is(err, fs.ErrNotExist) { // removed in the meantime
		return false, nil
	}
	return err == nil, errors.Join(err, flush.File(file))
}

// isSame reports whether two files have the same bytes. An error is a difference.
func isSame(a, b *os.File) bool {
	one, errA := a.Stat()
	two, errB := b.Stat()
	if errA != nil || errB != nil || one.Size() != two.Size() {
		return false
	}

	var left, right [32 << 10]byte
	for {
		n, errA := io.ReadFull(a, left[:])
		m, errB := io.ReadFull(b, right[:])
		if !bytes.Equal(left[:n], right[:m]) {
			return false
		}
		if errA != nil || errB != nil {
			isEnd := errors.Is(errA, io.EOF) || errors.Is(errA, io.ErrUnexpectedEOF)
			return isEnd && errors.Is(errB, errA)
		}
	}
}

// makeShard creates a subfolder and makes its name durable. Another process may have just created
// it, so each process flushes it once.
func (s *Store) makeShard(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := checkShard(dir); err != nil {
		return err
	}

	if _, is := s.lasting.Load(dir); is {
		return nil
	}
	if err := flush.Folder(s.dir); err != nil {
		return err
	}
	s.lasting.Store(dir, true)
	return nil
}

// checkShard refuses a link in the place of a subfolder, which could lead anywhere.
func checkShard(dir string) error {
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%q is not a folder: move it away", dir)
	}
	return err
}

// Open implements [objects.Store].
func (s *Store) Open(ctx context.Context, digest string) (io.ReadCloser, error) {
	if err := check(ctx, digest); err != nil {
		return nil, err
	}
	file, err := s.openFile(digest)
	if err != nil {
		return nil, s.explain("open", digest, err)
	}

	r, err := unpack(ctx, file, digest)
	if err != nil {
		_ = file.Close() // only read
		return nil, s.explain("open", digest, err)
	}
	r.explain = func(err error) error { return s.explain("read", digest, err) }
	return r, nil
}

// Stat implements [objects.Store].
func (s *Store) Stat(ctx context.Context, digest string) (objects.Object, error) {
	if err := check(ctx, digest); err != nil {
		return objects.Object{}, err
	}
	o, err := s.stat(digest)
	if err != nil {
		return objects.Object{}, s.explain("find", digest, err)
	}
	return o, nil
}

func (s *Store) stat(digest string) (objects.Object, error) {
	file, err := s.openFile(digest)
	if err != nil {
		return objects.Object{}, err
	}
	defer file.Close()
	return readHeader(file, digest)
}

// Remove implements [objects.Store]. It also removes what is damaged, or a link.
func (s *Store) Remove(ctx context.Context, digest string) error {
	if err := check(ctx, digest); err != nil {
		return err
	}

	err := checkShard(s.shard(digest))
	if err == nil {
		err = os.Remove(s.path(digest))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.explain("remove", digest, err)
	}
	return nil
}

// check refuses an invalid digest, and a call whose context has ended.
func check(ctx context.Context, digest string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return objects.CheckDigest(digest)
}

// openFile opens the file of an object.
func (s *Store) openFile(digest string) (*os.File, error) {
	if err := checkShard(s.shard(digest)); err != nil {
		return nil, err
	}
	return openPlain(s.path(digest))
}

// openPlain opens a regular file. It neither follows a link nor waits for a pipe.
func openPlain(path string) (*os.File, error) {
	info, err := os.Lstat(path) // first, because opening a device may have effects
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}

	file, err := os.OpenFile(path, os.O_RDONLY|plainly, 0)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil {
		_ = file.Close() // only opened
		return nil, err
	}
	return file, nil
}

// errIrregular reports a link, a folder, a pipe or a device in the place of an object.
var errIrregular = fmt.Errorf("%w: it is not a regular file", objects.ErrDamaged)

// explain adds the attempt, the object and its place to an error.
func (s *Store) explain(attempt, digest string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = objects.ErrNotFound
	}
	return fmt.Errorf("cannot %s the object %s in %q: %w", attempt, digest, s.dir, err)
}
