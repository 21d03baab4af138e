package bigtext

import (
	"context"
	"fmt"
	"io"
)

// Raw returns the bytes [a,b) by byte offset; they may begin and end within a character. As with
// Slice, they are part of the mapping. An invalid range is an error.
func (t *Text) Raw(a, b int64) (data []byte, err error) {
	if a < 0 || a > b || b > t.Size() {
		return nil, rangeError("read bytes", a, b, t.Size())
	}
	err = t.run(func() error { data = t.data[a:b:b]; return nil })
	return data, err
}

// ByteRange returns the byte offsets of the characters [a,b).
func (t *Text) ByteRange(ctx context.Context, a, b int64) (lo, hi int64, err error) {
	err = t.withIndex(ctx, func(x *index) error {
		lo, hi, err = x.bytesOf(t.random, "find", a, b)
		return err
	})
	return lo, hi, err
}

// CharOffset returns the offset of the character that starts at a byte offset.
func (t *Text) CharOffset(ctx context.Context, byteOff int64) (off int64, err error) {
	if byteOff < 0 || byteOff > t.Size() {
		return 0, rangeError("find byte", byteOff, byteOff, t.Size())
	}
	err = t.withIndex(ctx, func(x *index) error {
		off = x.charOf(t.random, byteOff)
		return nil
	})
	return off, err
}

// ReadAt copies bytes of the text from the byte offset off, like [io.ReaderAt].
func (t *Text) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("cannot read from byte %d of %q: %w", off, t.name, errRange)
	}
	source := t.random
	if len(p) > nearSize { // large enough for reading ahead
		source = t.data
	}

	err = t.run(func() error {
		n = copy(p, source[min(off, t.Size()):])
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case n < len(p):
		return n, io.EOF
	}

	return n, nil
}
