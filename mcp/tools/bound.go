package tools

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// maxValues bounds the values in a message of a server: a small value takes many times its length
// in memory when it is decoded.
const maxValues = 1_000_000

// maxTogether bounds the values of the messages that a client sends at the same time.
const maxTogether = 2 * maxValues

// maxBatch bounds the messages that a client sends as one: each of them is answered at once.
const maxBatch = 100

// What is wrong with messages that have too many values: one, or all together.
var (
	ErrTooMany  = errors.New("too many values")
	ErrTogether = errors.New("too many values together")
)

// framing says where a message ends.
type framing int

const (
	oneMessage framing = iota // at the end
	lines                     // at the end of each line
	events                    // at each empty line, as server-sent events do
)

// bounded passes on the messages of a server before they are decoded. It ends with an error at one
// that is too large.
type bounded struct {
	io.ReadCloser

	what     string // the message, in words
	framing  framing
	isOpaque bool // the content is not decoded, so that its values do not count
	anyBytes bool // the bytes are bounded elsewhere
	isOurs   bool // it is for our own server, which answers a batch at once
	together *Values
	failed   atomic.Pointer[error]

	bytes, values            int // of the message that arrives
	depth, objects           int // of brackets, and the objects within the outermost one
	isText, isEscaped, isEnd bool
}

// theReply is what a server says.
const theReply = "the server's reply"

// Values counts the values of all messages that a server of ours answers at the same time.
type Values struct{ held atomic.Int64 }

// Bound passes on the message of a client with the bound of a server's values, and a bound of all
// values together. Its bytes are bounded elsewhere. Call release after the answer.
func (v *Values) Bound(r io.ReadCloser) (body io.ReadCloser, release func()) {
	b := &bounded{ReadCloser: r, what: "the message", anyBytes: true, isOurs: true, together: v}
	return b, func() { v.held.Add(-int64(b.values)) }
}

// BoundLines passes on the messages of a client, which are lines, with the bounds of a server's
// replies.
func BoundLines(r io.ReadCloser) io.ReadCloser {
	return &bounded{ReadCloser: r, what: "a message", framing: lines, isOurs: true}
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if failed := b.failed.Load(); failed != nil {
		return 0, *failed
	}
	n, err := b.ReadCloser.Read(p)
	before := b.values
	bad := b.count(p[:n])
	if b.together != nil && b.together.held.Add(int64(b.values-before)) > maxTogether && bad == nil {
		bad = fmt.Errorf("the messages that are being answered have %w, more than %d", ErrTogether, maxTogether)
	}
	if bad != nil {
		b.failed.Store(&bad)
		return 0, bad
	}
	return n, err
}

// err returns why the messages ended, nil if they are within the bounds.
func (b *bounded) err() error {
	if failed := b.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// count counts what arrives. In JSON, a comma or an opening bracket stands before each value but
// those of members.
func (b *bounded) count(part []byte) error {
	for _, c := range part {
		if c == '\n' {
			if b.framing == lines || b.framing == events && b.isEnd {
				b.bytes, b.values, b.isText, b.isEscaped = 0, 0, false, false
				b.depth, b.objects = 0, 0
			}
			b.isEnd = true
			continue
		}
		b.isEnd = b.isEnd && c == '\r'

		b.bytes++
		switch {
		case b.isEscaped:
			b.isEscaped = false
		case b.isText:
			b.isText, b.isEscaped = c != '"', c == '\\'
		case c == '"':
			b.isText = true
		case c == ',':
			b.values++
		case c == '[' || c == '{':
			b.values++
			if b.depth++; c == '{' && b.depth == 2 {
				b.objects++
			}
		case c == ']' || c == '}':
			b.depth--
		}
		if b.bytes > maxMessage && !b.anyBytes {
			return fmt.Errorf("%s has more than %d MiB", b.what, maxMessage>>20)
		}
		if b.values > maxValues && !b.isOpaque {
			return fmt.Errorf("%s has %w, more than %d", b.what, ErrTooMany, maxValues)
		}
		if b.objects > maxBatch && b.isOurs {
			return fmt.Errorf("%s is a batch of more than %d messages", b.what, maxBatch)
		}
	}
	return nil
}
