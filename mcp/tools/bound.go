package tools

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// maxValues is the maximum number of values in a server's message, because a small decoded value
// takes many times its length in memory.
const maxValues = 1_000_000

// maxTogether is the maximum number of values in a client's concurrent messages.
const maxTogether = 2 * maxValues

// maxBatch is the maximum number of messages in a batch, because all its messages are answered
// concurrently.
const maxBatch = 100

// Errors for too many values in one message, or in all messages together.
var (
	ErrTooMany  = errors.New("too many values")
	ErrTogether = errors.New("too many values together")
)

// framing determines where a message ends.
type framing int

const (
	oneMessage framing = iota // at the end of the stream
	lines                     // at the end of each line
	events                    // at each empty line, as server-sent events do
)

// bounded reads messages before they are decoded, and returns an error at a message that is too
// large.
type bounded struct {
	io.ReadCloser

	what     string // the message, for display
	framing  framing
	isOpaque bool // the content is not decoded, so its values do not count
	anyBytes bool // the bytes are bounded elsewhere
	isOurs   bool // the message is for our own server, which answers a batch concurrently
	together *Values
	failed   atomic.Pointer[error]

	bytes, values            int // size of the arriving message
	depth, objects           int // depth of brackets, and objects in the outermost one
	isText, isEscaped, isEnd bool
}

// theReply is the name of a server's reply in errors.
const theReply = "the server's reply"

// Values counts the values of all messages that our own server answers at the same time.
type Values struct{ held atomic.Int64 }

// Bound passes on a client's message, and limits the number of its values and of the values of all
// messages together. The bytes are bounded elsewhere. Call release after the answer.
func (v *Values) Bound(r io.ReadCloser) (body io.ReadCloser, release func()) {
	b := &bounded{ReadCloser: r, what: "the message", anyBytes: true, isOurs: true, together: v}
	return b, func() { v.held.Add(-int64(b.values)) }
}

// BoundLines passes on a client's messages, which are lines, with the same limits as a server's
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

// err returns why the messages ended, or nil if they are within the limits.
func (b *bounded) err() error {
	if failed := b.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// count counts arriving bytes. In JSON, a comma or an opening bracket precedes each value except
// the values of members.
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
