package format

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// stoppable is a reader that fails once its context ends.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.r.Read(p)
}

// meter is a reader that gives a decoder at most maxRecord bytes for one record, plus what the
// decoder has read ahead. So a decoder that collects a whole record in memory stops before it uses
// too much memory.
type meter struct {
	r    io.Reader
	left int
}

func newMeter(r io.Reader) *meter { return &meter{r, maxRecord} }

// next begins the next record.
func (m *meter) next() { m.left = maxRecord }

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errTooLong
	}
	n, err := m.r.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}

var errTooLong = fmt.Errorf("a record has more than %d bytes", maxRecord)

// ErrTooLarge reports that a file exceeds its size limit.
var ErrTooLarge = errors.New("the file is too large")

// Archives inflate when they are unpacked: text by a factor of 3 to 30, a bomb by up to 1030.
const (
	maxRatio  = 200
	freeBytes = 64 << 20 // may be inflated regardless of the ratio
)

// Open returns the content of a file, inflated if the file is in gzip format, up to limit bytes and
// until the context ends. It also returns the first bytes of the content, up to 64 KiB. The errors
// of the reader wrap [ErrTooLarge].
func Open(ctx context.Context, file io.Reader, limit int64) (content io.Reader, head []byte, err error) {
	packed := &counter{r: stoppable{ctx, file}}
	in := bufio.NewReaderSize(packed, 1<<16)
	content = in
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		inflated, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot inflate the file: %w", err)
		}
		content = &inflater{r: inflated, packed: packed}
	}

	out := bufio.NewReaderSize(&limited{content, limit, limit}, 1<<16)
	head, err = out.Peek(1 << 16)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if string(head[:min(3, len(head))]) == "\xef\xbb\xbf" { // a byte order mark
		_, err = out.Discard(3)
		return out, head[3:], err
	}

	return out, head, nil
}

// counter counts the bytes read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// inflater fails when an archive inflates too much.
type inflater struct {
	r      io.Reader
	packed *counter
	n      int64
}

func (i *inflater) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	if i.n += int64(n); i.n > freeBytes && i.n > maxRatio*i.packed.n {
		return 0, fmt.Errorf("%w: it inflates to more than %d times its size: inflate it yourself",
			ErrTooLarge, maxRatio)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("cannot inflate the file: %w", err)
	}

	return n, err
}

// limited is an io.LimitedReader that fails at its limit.
type limited struct {
	r           io.Reader
	left, limit int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d bytes: split it, or raise the limit",
			ErrTooLarge, l.limit)
	}

	return n, err
}
