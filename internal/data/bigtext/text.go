package bigtext

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// Sizes in bytes. A test makes them small, so that small texts have many
// blocks and chunks.
const (
	defaultChunk      = 4 << 20  // what a worker scans between two looks at the context
	defaultBlock      = 8 << 10  // one entry of the character index: 10 MiB for 10 GiB
	defaultSplitBlock = 32 << 10 // one entry of a split index
)

// Text is a read-only text. Its methods may be called concurrently. Use [Open],
// [FromBytes], [Spool] or [Dir.Open] to get one, and Close it.
type Text struct {
	name   string
	data   []byte // for scans
	random []byte // the same bytes for reads here and there: see doc.go
	file   *os.File
	state  os.FileInfo // at Open; nil without a file
	free   func() error
	kind   Kind

	sections []Section // of the document that it was made of
	tables   *tableSet // of the file; nil if it has none

	original *Text  // with the bytes that were decoded; nil if they are those of the text
	encoding string // of the original; empty for UTF-8
	binary   bool   // nobody decoded the bytes

	refs   atomic.Int64 // users of data, and one until Close
	closed atomic.Bool

	chunk, block, splitBlock int64

	index  atomic.Pointer[index]
	build  chan struct{} // held while an index is built
	splits splitCache

	characters *Characters // nil until the first call; guarded by build

	holes   []span // byte ranges that are holes of a sparse file
	holesDo sync.Once
}

// span is a range of bytes [lo,hi).
type span struct{ lo, hi int64 }

func newText(name string, data []byte) *Text {
	t := &Text{
		name: name, data: data, random: data, build: make(chan struct{}, 1),
		chunk: defaultChunk, block: defaultBlock, splitBlock: defaultSplitBlock,
	}
	t.refs.Store(1)
	return t
}

// FromBytes returns a text of the bytes b, which must not be written to any
// more. Its name, for messages and for Kind, is name.
func FromBytes(name string, b []byte) *Text {
	t := newText(name, b)
	t.kind = sniffKind(name, b)
	return t
}

// Name returns the path or name that the text was opened with.
func (t *Text) Name() string { return t.name }

// Size returns the size of the text in bytes.
func (t *Text) Size() int64 { return int64(len(t.data)) }

// File returns the open file under the text; nil for FromBytes. It belongs to
// the text; read it with ReadAt only, its offset is unspecified.
func (t *Text) File() *os.File { return t.file }

// Kind returns what the text seems to be, by its extension and its beginning.
func (t *Text) Kind() Kind { return t.kind }

// Close gives the mapping back once the calls that use it have returned. A
// second Close does nothing. Slices of a closed text must not be read any more.
func (t *Text) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	return t.release()
}

// acquire keeps the mapping until release; an error when the text is closed.
func (t *Text) acquire() error {
	for {
		n := t.refs.Load()
		if n <= 0 || t.closed.Load() {
			return fmt.Errorf("cannot use %q: %w", t.name, errClosed)
		}
		if t.refs.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

func (t *Text) release() error {
	if t.refs.Add(-1) > 0 || t.free == nil {
		return nil
	}
	if err := t.free(); err != nil {
		return fmt.Errorf("cannot close %q: %w", t.name, err)
	}
	return nil
}

// Changed compares the file's size, time of change and identity with those at
// Open. The error wraps [ErrChanged] and names the file; nil for FromBytes.
func (t *Text) Changed() error {
	if t.file == nil {
		return nil
	}
	return t.run(func() error {
		now, err := t.file.Stat()
		if err != nil {
			return fmt.Errorf("cannot inspect %q: %w", t.name, err)
		}
		return t.compare(now)
	})
}

func (t *Text) compare(now os.FileInfo) error {
	switch was := t.state; {
	case now.Size() < was.Size():
		return fmt.Errorf("context file %q was truncated from %d to %d bytes: %w",
			t.name, was.Size(), now.Size(), ErrChanged)
	case now.Size() != was.Size(), !now.ModTime().Equal(was.ModTime()), !os.SameFile(now, was):
		return fmt.Errorf("context file %q was written to while in use: %w", t.name, ErrChanged)
	}
	return nil
}

// lock waits for the right to build an index, or for the end of ctx.
func (t *Text) lock(ctx context.Context) error {
	select {
	case t.build <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Text) unlock() { <-t.build }
