package session

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"runtime/debug"
)

// sinks are where standard output and error also go, nil for nowhere.
type sinks [2]io.Writer

// output keeps what a snippet writes to its two streams, up to a limit of bytes.
type output struct {
	limit   int64
	total   int64 // written, kept or not
	streams [2]bytes.Buffer
	sinks   sinks
	echoed  string // the value of the last expression, as far as it was kept
	failed  error  // a sink's panic

	// keepsLast keeps the end of standard error beyond the limit: a dying Go program writes
	// its reason there.
	keepsLast bool
	last      []byte
}

// lastWords is how much of the end of standard error is kept, at least.
const lastWords = 256 << 10

// write takes a part of stream 0, standard output, or 1, standard error.
func (o *output) write(stream int, b []byte) {
	if o.keepsLast && stream == 1 {
		o.keepLast(b)
	}

	room := max(0, o.limit-o.total)
	o.total += int64(len(b))
	if int64(len(b)) > room {
		b = b[:room]
	}
	if len(b) == 0 {
		return
	}

	o.streams[stream].Write(b)
	if o.sinks[stream] != nil {
		o.pass(stream, b)
	}
}

// echo takes the value of the last expression as a line of standard output.
func (o *output) echo(text []byte) {
	before := o.streams[0].Len()
	o.write(0, append(bytes.Clone(text), '\n'))
	o.echoed = string(bytes.TrimSuffix(o.streams[0].Bytes()[before:], []byte{'\n'}))
}

// pass writes to the caller's writer. Its errors are not the snippet's. A writer that panics
// gets nothing more, and its panic becomes the error of the run.
func (o *output) pass(stream int, b []byte) {
	defer func() {
		if p := recover(); p != nil {
			o.sinks[stream] = nil
			o.failed = fmt.Errorf("the writer for the output panicked: %v\n%s", p, debug.Stack())
		}
	}()
	_, _ = o.sinks[stream].Write(b)
}

func (o *output) keepLast(b []byte) {
	o.last = append(o.last, b...)
	if len(o.last) > 2*lastWords {
		o.last = append(o.last[:0], o.last[len(o.last)-lastWords:]...)
	}
}

func (o *output) text(stream int) string { return o.streams[stream].String() }

func (o *output) dropped() int64 { return max(0, o.total-o.limit) }

// digest is a hash of what was kept, and of more, as canonical leaves it.
func (o *output) digest(more string, canonical func([]byte) []byte) [sha256.Size]byte {
	parts := [][]byte{o.streams[0].Bytes(), o.streams[1].Bytes(), []byte(more)}
	return sha256.Sum256(canonical(bytes.Join(parts, []byte{0})))
}

// Print takes what the guest writes without a request.
func (a *Accounts) Print(stderr bool, b []byte) {
	stream := 0
	if stderr {
		stream = 1
	}
	a.output.write(stream, b)
}

// KeepLastWords keeps the end of the snippet's standard error, even beyond the output limit.
func (a *Accounts) KeepLastWords() { a.output.keepsLast = true }

// LastWords returns the end of what the snippet wrote to standard error, and what was
// kept of its beginning.
func (a *Accounts) LastWords() (end []byte, beginning string) {
	return a.output.last, a.output.text(1)
}
