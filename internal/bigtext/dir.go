package bigtext

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"sync"
)

const (
	maxEntries = 1_000_000 // of a directory of texts, with all it holds
	maxOpen    = 64        // texts of a directory that are open at once
	readBatch  = 1024
	maxCopied  = 64 << 10 // bytes of a file that is read: to map it would take longer
)

// Dir is a directory of texts: the regular files in it and below, as they were
// at OpenDir. Its methods may be called concurrently.
type Dir struct {
	name    string
	root    *os.Root
	names   []string
	sizes   map[string]int64
	skipped int

	mu     sync.Mutex
	open   []*Text // the last used first
	closed bool
}

// OpenDir walks the directory at name once. Symbolic links are not followed;
// they and all that is neither a file nor a directory are counted as skipped.
// The error wraps [ErrTooLarge] when there are more than 1,000,000 entries.
func OpenDir(name string) (*Dir, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("cannot open the context directory: %w", err)
	}
	d := &Dir{name: name, root: root, sizes: map[string]int64{}}
	if err := d.walk(maxEntries); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	sort.Strings(d.names)
	return d, nil
}

func (d *Dir) walk(limit int) error {
	left := limit
	for dirs := []string{"."}; len(dirs) > 0; {
		dir := dirs[len(dirs)-1]
		more, n, err := d.list(dir, dirs[:len(dirs)-1], left)
		if err != nil {
			return fmt.Errorf("cannot list the context directory %q: %w", d.name, err)
		}
		if left -= n; left < 0 {
			return fmt.Errorf("cannot use the context directory %q: %w: it has more than %d entries: give a part of it", d.name, ErrTooLarge, limit)
		}
		dirs = more
	}
	return nil
}

// list adds the files of dir to d and its directories to dirs; n is the number
// of its entries, of which it reads few more than left.
func (d *Dir) list(dir string, dirs []string, left int) (more []string, n int, err error) {
	f, err := d.root.Open(dir)
	if err != nil {
		return dirs, 0, err
	}
	defer f.Close()
	for n <= left {
		entries, err := f.ReadDir(readBatch)
		if n += len(entries); err == io.EOF {
			return dirs, n, nil
		}
		if err != nil {
			return dirs, n, err
		}
		for _, e := range entries {
			if name := path.Join(dir, e.Name()); e.IsDir() {
				dirs = append(dirs, name)
			} else if err := d.add(name, e); err != nil {
				return dirs, n, err
			}
		}
	}
	return dirs, n, nil
}

func (d *Dir) add(name string, e os.DirEntry) error {
	if !e.Type().IsRegular() {
		d.skipped++
		return nil
	}
	info, err := e.Info()
	if errors.Is(err, os.ErrNotExist) { // removed meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	d.names = append(d.names, name)
	d.sizes[name] = info.Size()
	return nil
}

// Names returns the paths of the files, relative, with slashes, sorted by their
// bytes. Do not write to the slice.
func (d *Dir) Names() []string { return d.names }

// Skipped returns how many entries are neither a regular file nor a directory.
func (d *Dir) Skipped() int { return d.skipped }

// Size returns the size in bytes that the file name had at OpenDir. The error
// wraps os.ErrNotExist when it is none of Names.
func (d *Dir) Size(name string) (int64, error) {
	n, ok := d.sizes[name]
	if !ok {
		return 0, fmt.Errorf("cannot find %q in the context directory %q: %w", name, d.name, os.ErrNotExist)
	}
	return n, nil
}

// Open returns the text of the file name, one of Names. The directory owns it:
// it closes the least recently opened text when more than 64 are open, so ask
// again rather than keep it (calls that run meanwhile end as they should; later
// ones get [ErrClosed]).
func (d *Dir) Open(name string) (*Text, error) {
	if _, err := d.Size(name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("cannot open %q: the context directory %q: %w", name, d.name, ErrClosed)
	}
	for i, t := range d.open {
		if t.name == name && !t.closed.Load() {
			copy(d.open[1:i+1], d.open[:i])
			d.open[0] = t
			return t, nil
		}
	}
	t, err := d.load(name)
	if err != nil {
		return nil, err
	}
	d.open = append([]*Text{t}, d.open...)
	return t, d.trim(maxOpen)
}

// load maps the file, or reads a short one. Nobody can make it wait: a path that has
// become a FIFO since OpenDir is not opened, for the look comes first and the open
// does not block.
func (d *Dir) load(name string) (*Text, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("cannot open a file of the context directory: %w", err)
	}
	if err := regular(name, info); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open a file of the context directory: %w", err)
	}
	if info.Size() <= maxCopied {
		return copied(name, f)
	}
	return fromFile(name, f)
}

// copied is the text of the short file f, which it closes.
func copied(name string, f *os.File) (*Text, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxCopied+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("cannot read a file of the context directory: %w", err)
	}
	if len(data) > maxCopied {
		return nil, fmt.Errorf("context file %q was written to while it was read: %w", name, ErrChanged)
	}
	return FromBytes(name, data), nil
}

// trim closes the texts after the first n, and the closed ones are forgotten.
func (d *Dir) trim(n int) (err error) {
	for len(d.open) > n {
		last := d.open[len(d.open)-1]
		d.open = d.open[:len(d.open)-1]
		err = errors.Join(err, last.Close())
	}
	return err
}

// Close closes the texts that are open, and the directory. A second Close does
// nothing.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return errors.Join(d.trim(0), d.root.Close())
}
