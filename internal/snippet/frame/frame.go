// Package frame carries messages over a byte stream, a socket or a pipe,
// between a host and a guest that may be hostile.
//
// A frame is a header of five bytes and a payload: the length of the payload as 4 bytes, least
// significant first, then 1 byte for its kind. The two ends agree on the kinds and on the contents
// of payloads.
//
// A stream that breaks the rules once cannot be trusted again. After an error, a Reader keeps
// returning that error.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// headerSize is the size of a header in bytes.
const headerSize = 5

// keep bounds the buffer that a Reader keeps between frames, so that one large frame does not
// occupy memory forever.
const keep = 1 << 20

// step is the allocation before the first bytes of a payload arrive. A header alone must not make
// the host allocate more.
const step = 64 << 10

// ErrTooLarge is wrapped by the error for a frame over the maximum.
var ErrTooLarge = errors.New("frame is larger than its maximum")

// A Reader reads frames. It does not support concurrent use.
type Reader struct {
	r   io.Reader
	max int
	err error
	// The header is a field because a local variable would escape to the heap each time.
	header [headerSize]byte
	buf    []byte
}

// NewReader returns a Reader that accepts payloads of at most max bytes.
func NewReader(r io.Reader, max int) *Reader { //nolint:revive,predeclared // max is the right name
	return &Reader{r: r, max: max}
}

// Next reads one frame. The payload is valid until the next call. The error is io.EOF if the stream
// ended between two frames, and io.ErrUnexpectedEOF if it ended within one; it wraps ErrTooLarge if
// the payload exceeds the maximum.
func (r *Reader) Next() (kind byte, payload []byte, err error) {
	if r.err != nil {
		return 0, nil, r.err
	}
	kind, payload, r.err = r.next()
	return kind, payload, r.err
}

func (r *Reader) next() (byte, []byte, error) {
	// The header is read separately, so that no byte of the next frame is consumed.
	if _, err := io.ReadFull(r.r, r.header[:]); err != nil {
		return 0, nil, err
	}
	size := binary.LittleEndian.Uint32(r.header[:4])
	if uint64(size) > uint64(max(r.max, 0)) {
		return 0, nil, fmt.Errorf(
			"cannot read a frame of %d bytes: the maximum is %d: %w",
			size, r.max, ErrTooLarge,
		)
	}
	payload, err := r.fill(int(size))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return r.header[4], payload, err
}

// fill reads a payload into the buffer, which grows with the bytes that arrive.
func (r *Reader) fill(size int) ([]byte, error) {
	if cap(r.buf) > keep && size <= keep {
		r.buf = nil
	}
	r.buf = r.buf[:0]
	for len(r.buf) < size {
		have := len(r.buf)
		if have == cap(r.buf) {
			grown := make([]byte, have, min(size, max(2*have, step)))
			copy(grown, r.buf)
			r.buf = grown
		}
		r.buf = r.buf[:min(size, cap(r.buf))]
		if _, err := io.ReadFull(r.r, r.buf[have:]); err != nil {
			return nil, err
		}
	}
	return r.buf, nil
}

// A Writer writes frames. It does not support concurrent use.
type Writer struct {
	w   io.Writer
	max int
	buf []byte
}

// NewWriter returns a Writer that accepts payloads of at most max bytes.
func NewWriter(w io.Writer, max int) *Writer { //nolint:revive,predeclared // max is the right name
	return &Writer{w: w, max: min(max, math.MaxInt32)}
}

// Write writes one frame with one call of the underlying Write. The payload is the concatenation of
// the pieces. If it exceeds the maximum, Write writes nothing and returns an error that wraps
// ErrTooLarge.
func (w *Writer) Write(kind byte, pieces ...[]byte) error {
	size := 0
	for _, piece := range pieces {
		size += len(piece)
		if len(piece) > w.max || size > w.max {
			return fmt.Errorf(
				"cannot write a frame of at least %d bytes: the maximum is %d: %w",
				size, w.max, ErrTooLarge,
			)
		}
	}
	w.buf = AppendHeader(w.buf[:0], kind, size)
	for _, piece := range pieces {
		w.buf = append(w.buf, piece...)
	}
	_, err := w.w.Write(w.buf)
	if cap(w.buf) > keep {
		w.buf = nil
	}
	if err != nil {
		return fmt.Errorf("cannot write a frame of %d bytes: %w", size, err)
	}
	return nil
}
