package bigtext

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/data/tables"
)

// These sizes are in bytes. Tests make them small, so that small texts have many blocks and chunks.
const (
	defaultChunk      = 4 << 20  // scanned by a worker between two checks of the context
	defaultBlock      = 8 << 10  // one entry of the character index: 10 MiB for 10 GiB
	defaultSplitBlock = 32 << 10 // one entry of a split index
)

// Text is a read-only text. Its methods may be called concurrently. [Open], [FromBytes], [Spool]
// and [Dir.Open] return texts. The caller must Close them.
type Text struct {
	name   string
	data   []byte // for scans
	random []byte // the same bytes for scattered reads: see doc.go
	file   *os.File
	state  os.FileInfo // at Open; nil without a file
	free   func() error
	kind   Kind

	sections []Section      // sections of the original document
	csv      tables.Options // for reading the text as CSV
	tables   *tableSet      // the file's tables; may be nil
	draw     PageDrawer     // draws the document's pages; may be nil

	original *Text  // the text before decoding; nil if nothing was decoded
	encoding string // the original encoding; empty for UTF-8
	binary   bool   // the bytes are not decoded

	refs   atomic.Int64 // users of data, plus one until Close
	closed atomic.Bool

	chunk, block, splitBlock int64

	index  atomic.Pointer[index]
	build  chan struct{} // held while an index is built
	splits splitCache

	characters *Characters // nil until the first call; guarded by build

	holes   []span // byte ranges of the holes in a sparse file
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

// FromBytes returns a text of the bytes b, which must not change afterwards. The name is used in
// messages and for Kind.
func FromBytes(name string, b []byte) *Text {
	t := newText(name, b)
	t.kind = sniffKind(name, b)
	return t
}

// Name returns the path or name that the text was opened with.
func (t *Text) Name() string { return t.name }

// Size returns the size of the text in bytes.
func (t *Text) Size() int64 { return int64(len(t.data)) }

// File returns the open file behind the text, or nil for FromBytes. It belongs to the text; only
// use ReadAt, because its offset is unspecified.
func (t *Text) File() *os.File { return t.file }

// Kind returns the apparent kind of the text, determined by its extension and its beginning.
func (t *Text) Kind() Kind { return t.kind }

// MarkCSV sets the options for reading the text as CSV. Call it before the text is used.
func (t *Text) MarkCSV(o tables.Options) { t.csv = o }

// CSV returns the options that MarkCSV set.
func (t *Text) CSV() tables.Options { return t.csv }

// Close releases the mapping once the calls that use it have returned. A second Close does nothing.
// Slices of a closed text must not be read.
func (t *Text) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	return t.release()
}

// acquire keeps the mapping until release; it returns an error if the text is closed.
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

// Changed compares the file's size, modification time and identity with those at Open. The error
// wraps [ErrChanged] and names the file. For FromBytes, Changed returns nil.
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
