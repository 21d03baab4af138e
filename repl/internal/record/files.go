package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/machine/filelock"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// files are the files of a record, in one folder. They are safe for concurrent use.
type files struct {
	dir string

	mu      sync.Mutex
	open    map[string]*lines
	prompts trajectory.Prompts // prompts of the files that follow a run log
	err     error              // the first error that belongs to no open file
}

// lines is an append-only file of JSON Lines.
type lines struct {
	mu     sync.Mutex
	file   *os.File
	err    error
	broken bool // a line could not be written completely
}

// begin creates the files of the root.
func (f *files) begin() error {
	if err := f.add(trajectory.File); err != nil {
		return err
	}
	return f.add(trajectory.EventsFile)
}

// add creates a file, which must not exist yet.
func (f *files) add(name string) error {
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return existsError(path)
	case err != nil:
		return err
	}

	if name == trajectory.EventsFile {
		_, _ = filelock.Try(file) // the lock shows the viewer that the record is being written
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[name] = &lines{file: file}
	return nil
}

func existsError(path string) error {
	return fmt.Errorf("open %s: %w: name a new or empty folder", path, fs.ErrExist)
}

// checkNew rejects a folder that holds the record of a run.
func (f *files) checkNew() error {
	for _, name := range []string{trajectory.File, trajectory.EventsFile} {
		path := filepath.Join(f.dir, name)
		if _, err := os.Lstat(path); err == nil {
			return existsError(path)
		}
	}
	return nil
}

// write appends a line. The first error of a file is kept until the end of its loop reports it.
// After a line that could not be written completely, it writes nothing.
func (f *files) write(name string, line []byte) {
	f.mu.Lock()
	l := f.open[name]
	f.mu.Unlock()
	if l == nil {
		return // the file has ended
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return
	}
	_, err := l.file.Write(append(line[:len(line):len(line)], '\n'))
	l.broken = err != nil
	l.err = cmp.Or(l.err, err)
}

// end closes a file and returns its first error.
func (f *files) end(name string) error {
	f.mu.Lock()
	l := f.open[name]
	delete(f.open, name)
	f.prompts.Forget(name)
	f.mu.Unlock()
	if l == nil {
		return nil
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.err, l.file.Close())
}

// endAll closes all files.
func (f *files) endAll() error {
	f.mu.Lock()
	errs := []error{f.err}
	var names []string
	for name := range f.open {
		names = append(names, name)
	}
	f.mu.Unlock()

	for _, name := range names {
		errs = append(errs, f.end(name))
	}
	return errors.Join(errs...)
}

// subLoop matches the folder of a sub-loop.
var subLoop = lazyregexp.New(`^sub_[0-9]{4,9}$`)

// clear deletes the record in the folder.
func (f *files) clear() error {
	root, err := os.OpenRoot(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	entries, err := fs.ReadDir(root.FS(), ".")
	errs := []error{err}
	for _, e := range entries {
		name := e.Name()
		if name == trajectory.File || name == trajectory.EventsFile || e.IsDir() && subLoop.MatchString(name) {
			errs = append(errs, root.RemoveAll(name))
		}
	}
	return errors.Join(append(errs, root.Close())...)
}

// note stores the first error that belongs to no open file.
func (f *files) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = cmp.Or(f.err, err)
}

// follower writes the files of a record that a run log stores.
type follower struct {
	files *files
	// isKnown means that an earlier process of the run wrote the folder.
	isKnown bool

	past   trajectory.Rebuilt
	begun  bool
	opened map[string]bool // files with lines of an earlier process
}

// Past implements [runlog.Follower].
func (f *follower) Past(turn int, data []byte) error { return f.past.Add(turn, data) }

// Line implements [runlog.Follower].
func (f *follower) Line(k *trajectory.Kept) {
	if !f.begun {
		f.begun = true
		f.files.note(f.begin())
	}
	if !k.Opens || !f.opened[k.File] { // otherwise an earlier process began the run
		f.files.note(f.write(k))
	}
}

// begin writes the lines that earlier processes stored.
func (f *follower) begin() error {
	if f.isKnown {
		if err := f.files.clear(); err != nil {
			return err
		}
		if err := f.files.begin(); err != nil {
			return err
		}
	}

	f.opened = map[string]bool{}
	_, err := f.past.Each(func(file string, line []byte) error {
		f.opened[file] = true
		return f.writeLine(file, line)
	})
	f.past = trajectory.Rebuilt{}

	for file := range f.opened { // the sub-loops of earlier processes have ended
		if file != trajectory.File && file != trajectory.EventsFile {
			err = cmp.Or(err, f.files.end(file))
		}
	}
	return err
}

// write writes a line with its complete prompt.
func (f *follower) write(k *trajectory.Kept) error {
	f.files.mu.Lock()
	line, err := f.files.prompts.Expand(k)
	f.files.mu.Unlock()
	if err != nil {
		return err
	}
	return f.writeLine(k.File, line)
}

// writeLine appends a line to a file, creating it if necessary.
func (f *follower) writeLine(name string, line []byte) error {
	f.files.mu.Lock()
	isOpen := f.files.open[name] != nil
	f.files.mu.Unlock()
	if !isOpen {
		if err := f.files.add(name); err != nil {
			return err
		}
	}
	f.files.write(name, line)
	return nil
}
