package gate

import (
	"io"
	"net/http"
	"time"
)

// How long a client may take. A slow one is cut off, so that it holds nothing for long.
const (
	patience    = 30 * time.Second // for the next part of a body, and to take what was written
	wholeBody   = time.Minute      // for a whole body
	wholeUpload = 6 * time.Hour    // for the body of a large path
)

// answer is a response that remembers its status.
type answer struct {
	http.ResponseWriter
	flow   *http.ResponseController
	status int
	route  string
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.extend()
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(data []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.extend()
	return a.ResponseWriter.Write(data)
}

// extend gives the client time for the next part. A recorder of a test has no deadlines.
func (a *answer) extend() { _ = a.flow.SetWriteDeadline(time.Now().Add(patience)) }

// Unwrap lets [http.ResponseController] flush.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// body is the body of a request, whose parts have to arrive in time.
type body struct {
	io.ReadCloser
	held    *share // nil for a body that nobody keeps in memory
	flow    *http.ResponseController
	end     time.Time
	reading bool
}

func newBody(a *answer, r io.ReadCloser, isLarge bool) *body {
	if r == nil {
		r = http.NoBody
	}
	whole := wholeBody
	if isLarge {
		whole = wholeUpload
	}
	return &body{ReadCloser: r, flow: a.flow, end: time.Now().Add(whole)}
}

// Read implements [io.Reader].
func (b *body) Read(into []byte) (int, error) {
	next := time.Now().Add(patience)
	if b.end.Before(next) {
		next = b.end
	}
	b.reading = true
	_ = b.flow.SetReadDeadline(next)

	n, err := b.ReadCloser.Read(into)
	if b.held != nil {
		if full := b.held.add(int64(n)); full != nil {
			n, err = 0, full
		}
	}
	if err != nil {
		b.endReading()
	}
	return n, err
}

// endReading takes the deadline back: with one, the server would take a quiet client for one
// that has gone away.
func (b *body) endReading() {
	if b.reading {
		b.reading = false
		_ = b.flow.SetReadDeadline(time.Time{})
	}
}
