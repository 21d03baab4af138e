package bigtext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Spooled is like Spool, for a text with a name. A text of at most 1 MiB is kept in memory. Close
// also calls free, and so does Spooled before it returns an error.
func Spooled(ctx context.Context, name string, r io.Reader, bound int64, free func() error) (*Text, error) {
	t, err := spoolOrKeep(ctx, name, r, bound)
	if err != nil {
		return nil, errors.Join(err, free())
	}

	t.Own(free)
	return t, nil
}

// spoolOrKeep keeps a short text in memory.
func spoolOrKeep(ctx context.Context, name string, r io.Reader, bound int64) (*Text, error) {
	const short = 1 << 20
	var head bytes.Buffer
	limited := min(bound, short)
	if _, err := io.Copy(&head, io.LimitReader(r, limited+1)); err != nil {
		return nil, fmt.Errorf("cannot read the input: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	if int64(head.Len()) <= limited {
		return FromBytes(name, head.Bytes()), nil
	}
	return spoolAs(ctx, name, io.MultiReader(&head, r), bound)
}

// Decoded returns the text with the characters of original, which has the given encoding. The
// reader r provides them as UTF-8, in at most bound bytes. The text takes ownership of the
// original, even after an error.
func Decoded(ctx context.Context, original *Text, encoding string, r io.Reader, bound int64) (*Text, error) {
	t, err := Spooled(ctx, original.name, r, bound, original.Close)
	if err != nil {
		return nil, err
	}
	t.original, t.encoding = original, encoding
	return t, nil
}

// OwnOriginal records that the text was made from the bytes of another text, and takes ownership of
// that one. Call it before the text is used.
func (t *Text) OwnOriginal(original *Text) {
	t.original = original
	t.Own(original.Close)
}

// Encoding returns the encoding of the original bytes, or an empty string for UTF-8.
func (t *Text) Encoding() string { return t.encoding }

// Original returns the text with the bytes before decoding; it is the text itself if nothing was
// decoded.
func (t *Text) Original() *Text {
	if t.original != nil {
		return t.original
	}
	return t
}

// MarkBinary records that the bytes of the text are not decoded, and records their apparent kind.
// Call it before the text is used.
func (t *Text) MarkBinary(kind Kind) { t.kind, t.binary = kind, true }

// Section is a page, a sheet, a message or a similar part of a document. It ends where the next one
// starts.
type Section struct {
	Title string
	Start int64 // in bytes
}

// MarkDocument records the kind of document that the text was made from, and its sections in order.
// Call it before the text is used.
func (t *Text) MarkDocument(kind Kind, sections []Section) { t.kind, t.sections = kind, sections }

// Sections returns the sections passed to MarkDocument. Do not write to the slice.
func (t *Text) Sections() []Section { return t.sections }

// IsBinary reports whether MarkBinary was called.
func (t *Text) IsBinary() bool { return t.binary }

// Own makes Close call free as well. Call it before the text is used.
func (t *Text) Own(free func() error) {
	own := t.free
	t.free = sync.OnceValue(func() error {
		if own == nil {
			return free()
		}
		return errors.Join(own(), free())
	})
}
