package bigtext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"weak"
)

// Source is a text implemented by another package. [*Text] is one, and so are [*strings.Reader] and
// [*io.SectionReader].
type Source interface {
	io.ReaderAt
	// Size returns the number of bytes.
	Size() int64
}

// DirSource is a directory of texts implemented by another package. [*Dir] is one.
type DirSource interface {
	Names() []string
	Size(name string) (int64, error)
	Open(name string) (fs.File, error)
}

// maxInMemory is the size up to which a source is copied to memory, in bytes. A longer source is
// copied to a temporary file.
const maxInMemory = 8 << 20

// Of returns the source itself if it is a [*Text], and otherwise a copy of it. Copies are shared:
// while one copy of a source is in use, Of returns the same copy. A copy needs no Close; it is
// freed when nothing refers to it.
func Of(ctx context.Context, source Source) (*Text, error) {
	if t, ok := source.(*Text); ok {
		return t, nil
	}
	if !reflect.ValueOf(source).Comparable() {
		return copySource(ctx, source)
	}

	if t := copies.find(source); t != nil {
		return t, nil
	}
	t, err := copySource(ctx, source)
	if err != nil {
		return nil, err
	}
	return copies.keep(source, t), nil
}

// copySource copies a source to memory or to a temporary file.
func copySource(ctx context.Context, source Source) (*Text, error) {
	name, size := nameOf(source), source.Size()
	if size < 0 {
		return nil, fmt.Errorf("cannot use the text %q: its size %d is negative", name, size)
	}

	exact := &exactReader{name: name, r: io.NewSectionReader(source, 0, size), left: size}

	if size <= maxInMemory {
		var data bytes.Buffer
		data.Grow(int(size) + bytes.MinRead)
		if _, err := data.ReadFrom(exact); err != nil {
			return nil, err
		}
		return FromBytes(name, data.Bytes()), nil
	}
	return spoolFreed(ctx, name, exact, size)
}

// spoolFreed spools to a text that is freed when it is unreachable or closed.
func spoolFreed(ctx context.Context, name string, r io.Reader, size int64) (*Text, error) {
	t, err := spoolAs(ctx, name, r, size)
	if err != nil {
		return nil, err
	}

	t.free = sync.OnceValue(t.free)
	runtime.AddCleanup(t, func(free func() error) {
		_ = free() // the file is a copy without a name
	}, t.free)
	return t, nil
}

// nameOf returns the name of a source for messages and for its kind.
func nameOf(source any) string {
	if named, ok := source.(interface{ Name() string }); ok {
		return named.Name()
	}
	return "text"
}

// exactReader reads a source and fails if the source ends before its size.
type exactReader struct {
	name string
	r    io.Reader
	left int64
}

// Read reads the next bytes.
func (e *exactReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.left -= int64(n)
	if errors.Is(err, io.EOF) && e.left > 0 {
		err = fmt.Errorf("cannot read the text %q: it ends %d bytes early", e.name, e.left)
	}
	return n, err
}

// copies contains the copies of sources that are in use. They do not keep the texts alive.
var copies = memo{known: map[Source]weak.Pointer[Text]{}}

type memo struct {
	mu    sync.Mutex // guards known
	known map[Source]weak.Pointer[Text]
}

func (m *memo) find(source Source) *Text {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[source].Value()
}

// keep records the copy t of a source, and returns it. If another goroutine has recorded one in the
// meantime, keep returns that one.
func (m *memo) keep(source Source, t *Text) *Text {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.known[source].Value(); other != nil {
		return other
	}
	m.known[source] = weak.Make(t)
	runtime.AddCleanup(t, m.forget, source)
	return t
}

func (m *memo) forget(source Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[source].Value() == nil {
		delete(m.known, source)
	}
}

// DirOf returns the source itself if it is a [*Dir], and otherwise a directory that copies each
// file when it is opened. It needs no Close.
func DirOf(source DirSource) (*Dir, error) {
	if d, ok := source.(*Dir); ok {
		return d, nil
	}
	return Select(source, Selection{}, nil)
}

// Select is like DirOf, for the files chosen by a selection. Close calls free, if it is set.
func Select(source DirSource, chosen Selection, free func() error) (*Dir, error) {
	d := &Dir{
		name:    nameOf(source),
		foreign: source,
		free:    free,
		sizes:   map[string]int64{},
		leftOut: map[string]int{},
		chosen:  chosen,
	}
	for _, name := range source.Names() {
		if !d.skip(name, false) {
			d.names = append(d.names, name)
		}
	}
	if len(d.names) > maxEntries {
		return nil, fmt.Errorf(
			"cannot use the context directory %q: %w: it has more than %d entries: pass a subdirectory",
			d.name, ErrTooLarge, maxEntries)
	}

	slices.Sort(d.names)
	d.names = slices.Compact(d.names)

	_, isHandedOver := source.(opener) // its names come from a Dir: not all are UTF-8
	for _, name := range d.names {
		if !isHandedOver && !fs.ValidPath(name) {
			return nil, fmt.Errorf(
				"cannot use the context directory %q: %q is not a relative path with slashes",
				d.name, name)
		}

		size, err := source.Size(name)
		if err != nil {
			return nil, fmt.Errorf("cannot use the context directory %q: %w", d.name, err)
		}

		d.sizes[name] = size
	}

	return d, nil
}

// copyForeign copies the file name from a foreign directory.
func (d *Dir) copyForeign(ctx context.Context, name string) (*Text, error) {
	if own, ok := d.foreign.(opener); ok {
		return own.OpenText(ctx, name)
	}
	f, err := d.foreign.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot open a file of the context directory: %w", err)
	}
	defer f.Close()

	size := d.sizes[name]
	if size <= maxInMemory {
		return readAll(name, f, size)
	}
	return spoolFreed(ctx, name, f, size)
}
