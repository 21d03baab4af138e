// Package sqlitestore implements a store in a folder: a SQLite database, with large contents in
// files next to it.
package sqlitestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/keep/dbfile"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// Store is a store in a folder. Several processes can use it at the same time.
type Store struct {
	dir      string
	readOnly bool
	copied   string       // folder of a copied database, or empty
	hold     *dbfile.Hold // holds the database

	reading sync.Mutex // guards reader
	reader  *conn

	writes chan write
	ended  chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	closed bool
	locks  map[store.ID]*os.File
	sends  sync.WaitGroup // writes being sent to the writer

	lasting sync.Map // folders with durable names
}

var _ store.Store = (*Store)(nil)

// now returns the current time. Times are for display: no decision depends on them.
var now = time.Now

// DatabaseName is the name of the database in the folder of a store.
const DatabaseName = "store.db"

// Open opens the store in a folder, and creates it if necessary. Only the user can read it.
func Open(dir string) (*Store, error) {
	f, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the store %s: %w", dir, advise(dir, explain(err)))
	}
	return f, nil
}

// advise adds advice to the error of a damaged store.
func advise(dir string, err error) error {
	if errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("%w: rlm store check %s says what is lost, and with --repair saves the rest", err, dir)
	}
	return err
}

func open(dir string) (_ *Store, err error) {
	for _, d := range []string{dir, filepath.Join(dir, blobFolder), filepath.Join(dir, lockFolder)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}

	path := filepath.Join(dir, DatabaseName)
	hold, err := dbfile.Use(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, hold.Close())
		}
	}()

	if err := CheckMissing(dir); err != nil {
		return nil, err
	}
	if err := dbfile.Create(path); err != nil {
		return nil, err
	}
	if err := checkDatabase(path); err != nil {
		return nil, err
	}

	writer, err := connectWriter(path)
	if err != nil {
		return nil, err
	}
	if err := migrate(writer); err != nil {
		return nil, errors.Join(err, writer.close())
	}

	reader, err := connect(dbfile.Address(path))
	if err != nil {
		return nil, errors.Join(err, writer.close())
	}

	f := &Store{
		dir: dir, hold: hold, reader: reader, locks: map[store.ID]*os.File{},
		writes: make(chan write, maxGroup), ended: make(chan struct{}),
	}
	go f.serveWrites(writer)
	return f, nil
}

// CheckMissing refuses a folder whose database is lost, because a new one would be empty. The error
// is [store.ErrDamaged].
func CheckMissing(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, DatabaseName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, pattern := range []string{filepath.Join(blobFolder, "*", "*"), filepath.Join(lockFolder, "*")} {
		found, err := filepath.Glob(filepath.Join(dir, pattern)) // hidden files are unfinished
		if err != nil || len(found) > 0 {
			return errors.Join(err, fmt.Errorf("%w: %s is missing", store.ErrDamaged, DatabaseName))
		}
	}
	return nil
}

// OpenReadOnly opens the store in a folder for reading. The folder may be read-only.
func OpenReadOnly(dir string) (*Store, error) {
	f, err := openReadOnly(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the store %s: %w", dir, advise(dir, explain(err)))
	}
	return f, nil
}

// OpenToRead opens the store in a folder for reading, and creates it if necessary. It opens a
// read-only folder like [OpenReadOnly].
func OpenToRead(dir string) (*Store, error) {
	f, err := Open(dir)
	if err == nil {
		return f, nil
	}
	if reader, failed := OpenReadOnly(dir); failed == nil {
		return reader, nil
	}
	return nil, err
}

// IsReadOnly reports whether every change fails with [store.ErrReadOnly].
func (f *Store) IsReadOnly() bool { return f.readOnly }

func openReadOnly(dir string) (_ *Store, err error) {
	f := &Store{dir: dir, readOnly: true}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.removeCopy(), f.hold.Close())
		}
	}()
	path := filepath.Join(dir, DatabaseName)
	if err := checkDatabase(path); err != nil {
		return nil, err
	}

	if f.hold, err = dbfile.Use(path); err != nil {
		return nil, err
	}
	name := dbfile.Address(path, "mode", "ro")
	if !isWritable(dir) { // no process writes, and the index of a log cannot be created
		name = dbfile.Address(path, "immutable", "1")
		if log, err := os.Stat(path + logSuffix); err == nil && log.Size() > 0 { // a process was killed
			copied, err := f.copyDatabase(path)
			if err != nil {
				return nil, err
			}
			name = dbfile.Address(copied)
		}
	}

	if f.reader, err = connect(name); err != nil {
		return nil, err
	}
	version, err := checkVersion(f.reader)
	if err == nil && version < oldestRead {
		err = fmt.Errorf("it has the older version %d: open it once with write access to upgrade it", version)
	}
	if err != nil {
		return nil, errors.Join(err, f.reader.close())
	}
	return f, nil
}

// logSuffix is the suffix of a database's log.
const logSuffix = "-wal"

// copyDatabase copies a database and its log to a folder where the index of the log can be created.
func (f *Store) copyDatabase(path string) (copied string, err error) {
	if f.copied, err = os.MkdirTemp("", "rlm-store-"); err != nil {
		return "", err
	}
	copied = filepath.Join(f.copied, DatabaseName)
	for _, suffix := range []string{"", logSuffix} {
		if err := copyFile(path+suffix, copied+suffix); err != nil {
			return "", err
		}
	}
	return copied, nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// removeCopy removes the copy made by copyDatabase.
func (f *Store) removeCopy() error {
	if f.copied == "" {
		return nil
	}
	return os.RemoveAll(f.copied)
}

// checkDatabase refuses anything except a regular file: SQLite would wait for the other end of a
// pipe.
func checkDatabase(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	return err
}

// isWritable reports whether files can be created in a folder.
func isWritable(dir string) bool {
	probe, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return false
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name())) == nil
}

// connectWriter opens the connection for writing. A transaction is on the disk when it ends.
func connectWriter(path string) (*conn, error) {
	c, err := connect(dbfile.Address(path))
	if err != nil {
		return nil, err
	}
	// Deleted content is overwritten, so a page contains either valid rows or none.
	err = c.Exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; " +
		"PRAGMA secure_delete = ON")
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// Close implements [store.Store].
func (f *Store) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}

	f.closed = true
	f.mu.Unlock()

	var failed error
	if !f.readOnly {
		last := write{done: make(chan error, 1)} // returns the errors of notes
		f.writes <- last
		failed = <-last.done
		f.sends.Wait()
		close(f.writes)
		<-f.ended
	}

	f.reading.Lock()
	defer f.reading.Unlock()
	errs := []error{failed, f.reader.close(), f.removeCopy(), f.hold.Close()}
	for _, lock := range f.locks {
		errs = append(errs, lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot close the store: %w", explain(err))
	}
	return nil
}

// read runs work on the connection for reading.
func (f *Store) read(work func(*conn) error) error {
	f.reading.Lock()
	defer f.reading.Unlock()
	return explain(work(f.reader))
}
