package session

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/rlmhq/rlm/tiers"
)

// sinks are additional writers for standard output and error; each may be nil.
type sinks [2]io.Writer

// output keeps a snippet's output on its two streams, up to a limit of bytes.
type output struct {
	limit   int64
	total   int64 // bytes written, kept or not
	streams [2]bytes.Buffer
	sinks   sinks
	echoed  string // the kept part of the last expression's value
	failed  error  // a sink's panic

	// keepsLast keeps the end of standard error even beyond the limit, because a dying Go program
	// writes the reason there.
	keepsLast bool
	last      []byte
}

// lastWords is the minimum size of the kept end of standard error, in bytes.
const lastWords = 256 << 10

// write adds a part of stream 0 (standard output) or 1 (standard error).
func (o *output) write(stream int, b []byte) {
	if b = o.keep(stream, b); len(b) > 0 && o.sinks[stream] != nil {
		o.pass(stream, func(to io.Writer) { _, _ = to.Write(b) })
	}
}

// keep keeps a part of a stream up to the limit, and returns the kept bytes.
func (o *output) keep(stream int, b []byte) []byte {
	if o.keepsLast && stream == 1 {
		o.keepLast(b)
	}

	room := max(0, o.limit-o.total)
	o.total += int64(len(b))
	if int64(len(b)) > room {
		b = b[:room]
	}
	o.streams[stream].Write(b)
	return b
}

// echo adds the value of the last expression as a line of standard output.
func (o *output) echo(text []byte) {
	kept := o.keep(0, append(bytes.Clone(text), '\n'))
	o.echoed = string(bytes.TrimSuffix(kept, []byte{'\n'}))
	if len(kept) > 0 && o.sinks[0] != nil {
		o.pass(0, func(to io.Writer) { WriteEcho(to, kept) })
	}
}

// WriteEcho writes the value of the last expression to the writer for standard output.
func WriteEcho(to io.Writer, text []byte) {
	if apart, ok := to.(tiers.EchoWriter); ok {
		apart.WriteEcho(text)
		return
	}
	_, _ = to.Write(text)
}

// pass calls write with the caller's writer. Errors of the writer do not affect the snippet. A
// writer that panics receives nothing more, and its panic becomes the error of the run.
func (o *output) pass(stream int, write func(to io.Writer)) {
	defer func() {
		if p := recover(); p != nil {
			o.sinks[stream] = nil
			o.failed = fmt.Errorf("the writer for the output panicked: %v\n%s", p, debug.Stack())
		}
	}()
	write(o.sinks[stream])
}

func (o *output) keepLast(b []byte) {
	o.last = append(o.last, b...)
	if len(o.last) > 2*lastWords {
		o.last = append(o.last[:0], o.last[len(o.last)-lastWords:]...)
	}
}

func (o *output) text(stream int) string { return o.streams[stream].String() }

func (o *output) dropped() int64 { return max(0, o.total-o.limit) }

// digest returns a hash of the kept output and of more, after applying canonical to both.
func (o *output) digest(more string, canonical func([]byte) []byte) [sha256.Size]byte {
	parts := [][]byte{o.streams[0].Bytes(), o.streams[1].Bytes(), []byte(more)}
	return sha256.Sum256(canonical(bytes.Join(parts, []byte{0})))
}

// Print adds output that the guest writes without a request.
func (a *Accounts) Print(stderr bool, b []byte) {
	stream := 0
	if stderr {
		stream = 1
	}
	a.output.write(stream, b)
}

// KeepLastWords keeps the end of the snippet's standard error, even beyond the output limit.
func (a *Accounts) KeepLastWords() { a.output.keepsLast = true }

// LastWords returns the end of the snippet's standard error, and the part of its beginning that was
// kept.
func (a *Accounts) LastWords() (end []byte, beginning string) {
	return a.output.last, a.output.text(1)
}
