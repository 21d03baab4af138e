package bigtext

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
)

const (
	maxEntries = 1_000_000 // in a directory of texts, including subdirectories
	maxOpen    = 64        // open texts of a directory
	readBatch  = 1024
	maxCopied  = 64 << 10 // bytes of a file that is read, because mapping would take longer
)

// Dir is a directory of texts: the regular files in it and below, as found by OpenDir. Its methods
// may be called concurrently.
type Dir struct {
	name    string
	root    *os.Root
	foreign DirSource // replaces root: see DirOf
	free    func() error
	names   []string
	sizes   map[string]int64
	leftOut map[string]int
	chosen  Selection

	mu     sync.Mutex
	open   []*Text // most recently used first
	closed bool
}

// Selection chooses the files of a directory and how they are read. The zero value selects all
// files unchanged.
type Selection struct {
	// Enter is called before the entries of a directory below root are read.
	Enter func(root *os.Root, dir string) error
	// Skip returns the reason why a file, or a directory with all of its content, is left out; it
	// is empty if the entry is included.
	Skip func(name string, isDir bool) (reason string)
	// Load converts the bytes of a file to its text. It takes ownership of the bytes.
	Load func(ctx context.Context, bytes *Text) (*Text, error)
}

// LinksAndSpecial is the reason why an entry that is neither a regular file nor a directory is
// left out.
const LinksAndSpecial = "links or special files"

// OpenDir walks the directory at name once. It does not follow symbolic links, and leaves out
// entries that are neither regular files nor directories. The error wraps [ErrTooLarge] if there
// are more than 1,000,000 entries.
func OpenDir(name string) (*Dir, error) {
	return OpenFiles(name, []string{"."}, Selection{})
}

// OpenFiles is like OpenDir, for some paths in the directory base: files, and directories with all
// of their content. The paths are relative, with slashes. The selection chooses the files, except
// that files listed in paths are always included.
func OpenFiles(base string, paths []string, chosen Selection) (*Dir, error) {
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, fmt.Errorf("cannot open the context directory: %w", err)
	}

	d := &Dir{
		name: base, root: root, sizes: map[string]int64{}, leftOut: map[string]int{}, chosen: chosen,
	}
	dirs, err := d.addNamed(paths)
	if err == nil {
		err = d.walk(dirs, maxEntries-len(paths))
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}

	slices.Sort(d.names)
	d.names = slices.Compact(d.names)
	return d, nil
}

// addNamed adds the files among the paths, and returns the directories.
func (d *Dir) addNamed(paths []string) (dirs []string, err error) {
	for _, name := range paths {
		info, err := d.root.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("cannot open a file of the context directory: %w", err)
		}
		if info.IsDir() {
			dirs = append(dirs, name)
			continue
		}
		if err := regular(name, info); err != nil {
			return nil, err
		}
		d.names = append(d.names, name)
		d.sizes[name] = info.Size()
	}
	return dirs, nil
}

func (d *Dir) walk(dirs []string, limit int) error {
	left := limit
	for len(dirs) > 0 {
		dir := dirs[len(dirs)-1]
		more, n, err := d.list(dir, dirs[:len(dirs)-1], left)
		if err != nil {
			return fmt.Errorf("cannot list the context directory %q: %w", d.name, err)
		}
		if left -= n; left < 0 {
			return fmt.Errorf(
				"cannot use the context directory %q: %w: it has more than %d entries: pass a subdirectory",
				d.name, ErrTooLarge, limit)
		}

		dirs = more
	}
	return nil
}

// list adds the files of dir to d and its directories to dirs; n is the number of its entries. It
// reads only slightly more than left entries.
func (d *Dir) list(dir string, dirs []string, left int) (more []string, n int, err error) {
	if d.chosen.Enter != nil {
		if err := d.chosen.Enter(d.root, dir); err != nil {
			return dirs, 0, err
		}
	}
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
			if name := path.Join(dir, e.Name()); d.skip(name, e.IsDir()) {
				continue
			} else if e.IsDir() {
				dirs = append(dirs, name)
			} else if err := d.add(name, e); err != nil {
				return dirs, n, err
			}
		}
	}

	return dirs, n, nil
}

// skip reports whether an entry is left out, and counts it if so.
func (d *Dir) skip(name string, isDir bool) bool {
	if d.chosen.Skip == nil {
		return false
	}
	reason := d.chosen.Skip(name, isDir)
	if reason != "" {
		d.leftOut[reason]++
	}
	return reason != ""
}

func (d *Dir) add(name string, e os.DirEntry) error {
	if !e.Type().IsRegular() {
		d.leftOut[LinksAndSpecial]++
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

// Names returns the paths of the files, relative, with slashes, sorted bytewise. Do not write to
// the slice.
func (d *Dir) Names() []string { return d.names }

// LeftOut returns the number of entries left out, by reason. Do not write to the map.
func (d *Dir) LeftOut() map[string]int { return d.leftOut }

// Size returns the size in bytes of the file name at the time of OpenDir. The error wraps
// os.ErrNotExist if name is not among Names.
func (d *Dir) Size(name string) (int64, error) {
	n, ok := d.sizes[name]
	if !ok {
		return 0, fmt.Errorf("cannot find %q in the context directory %q: %w",
			name, d.name, os.ErrNotExist)
	}
	return n, nil
}

// Open opens the file name, one of Names, for reading. It makes Dir an [fs.FS]. Directories cannot
// be opened.
func (d *Dir) Open(name string) (fs.File, error) {
	if _, err := d.Size(name); err != nil {
		return nil, err
	}
	if d.foreign != nil {
		return d.foreign.Open(name)
	}

	f, _, err := d.openFile(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Text returns the text of the file name, one of Names. The directory owns the text, and closes the
// least recently opened one when more than 64 are open. So do not keep a text; request it again.
// Calls that are already running complete normally; later ones fail.
func (d *Dir) Text(ctx context.Context, name string) (*Text, error) {
	if _, err := d.Size(name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.closed {
		return nil, fmt.Errorf("cannot open %q: the context directory %q: %w",
			name, d.name, errClosed)
	}

	for i, t := range d.open {
		if t.name == name && !t.closed.Load() {
			copy(d.open[1:i+1], d.open[:i])
			d.open[0] = t
			return t, nil
		}
	}

	t, err := d.load(ctx, name)
	if err != nil {
		return nil, err
	}

	d.open = append([]*Text{t}, d.open...)
	return t, d.trim(maxOpen)
}

// KeepsOpen reports whether Text never closes one text to open another: the directory has few
// files, and they are on this machine.
func (d *Dir) KeepsOpen() bool { return d.foreign == nil && len(d.names) <= maxOpen }

// Bytes returns the file name, one of Names, unchanged: it bypasses the selection's Load. The
// caller closes it.
func (d *Dir) Bytes(ctx context.Context, name string) (*Text, error) {
	if _, err := d.Size(name); err != nil {
		return nil, err
	}
	return d.loadBytes(ctx, name)
}

// load returns a file as converted by the selection.
func (d *Dir) load(ctx context.Context, name string) (*Text, error) {
	t, err := d.loadBytes(ctx, name)
	if err != nil || d.chosen.Load == nil {
		return t, err
	}
	if t, err = d.chosen.Load(ctx, t); err != nil {
		return nil, err
	}
	t.name = name // the name by which Text finds it
	return t, nil
}

// loadBytes maps the file, or reads it if it is short.
func (d *Dir) loadBytes(ctx context.Context, name string) (*Text, error) {
	if d.foreign != nil {
		return d.copyForeign(ctx, name)
	}
	f, size, err := d.openFile(name)
	if err != nil {
		return nil, err
	}
	if size <= maxCopied {
		return copied(name, f)
	}
	return fromFile(name, f)
}

// openFile opens the file and returns its size. It never blocks: it checks the path first, does not
// open a file that has become a FIFO since OpenDir, and uses a non-blocking open.
func (d *Dir) openFile(name string) (*os.File, int64, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot open a file of the context directory: %w", err)
	}
	if err := regular(name, info); err != nil {
		return nil, 0, err
	}

	f, err := d.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot open a file of the context directory: %w", err)
	}
	return f, info.Size(), nil
}

// copied returns the text of the short file f, which it closes.
func copied(name string, f *os.File) (*Text, error) {
	t, err := readAll(name, f, maxCopied)
	return t, errors.Join(err, f.Close())
}

// readAll reads a text of at most limit bytes.
func readAll(name string, r io.Reader, limit int64) (*Text, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read a file of the context directory: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("context file %q was written to while it was read: %w",
			name, ErrChanged)
	}
	return FromBytes(name, data), nil
}

// trim closes and removes the texts after the first n.
func (d *Dir) trim(n int) (err error) {
	for len(d.open) > n {
		last := d.open[len(d.open)-1]
		d.open = d.open[:len(d.open)-1]
		err = errors.Join(err, last.Close())
	}
	return err
}

// Close closes the open texts, and the directory. A second Close does nothing.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}

	d.closed = true
	err := d.trim(0)
	if d.free != nil {
		err = errors.Join(err, d.free())
	}
	if d.root == nil {
		return err
	}
	return errors.Join(err, d.root.Close())
}
