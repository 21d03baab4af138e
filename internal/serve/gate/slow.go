package gate

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// How long a client may take. A slow one is cut off, so that it holds nothing for long.
const (
	anyPatience = 30 * time.Second // for the next part of a body, and to take what was written
	wholeBody   = time.Minute      // for a whole body
	wholeUpload = 6 * time.Hour    // for the body of a large path
)

// answer is a response that remembers its status.
type answer struct {
	http.ResponseWriter
	flow     *http.ResponseController
	patience time.Duration
	status   int
	route    string
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
func (a *answer) extend() { _ = a.flow.SetWriteDeadline(time.Now().Add(a.patience)) }

// Unwrap lets [http.ResponseController] flush.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// body is the body of a request, whose parts have to arrive in time.
type body struct {
	io.ReadCloser
	held     *share // nil for a body that nobody keeps in memory
	values   *share // what its values take once they are decoded
	heaviest int64
	scale    scale
	flow     *http.ResponseController
	patience time.Duration
	end      time.Time
	begun    bool
	whole    bool // nothing is left to read
}

func newBody(a *answer, r io.ReadCloser, isLarge bool) *body {
	if r == nil {
		r = http.NoBody
	}
	most := wholeBody
	if isLarge {
		most = wholeUpload
	}
	return &body{
		ReadCloser: r, flow: a.flow, patience: a.patience, end: time.Now().Add(most), whole: r == http.NoBody,
	}
}

// Read implements [io.Reader].
func (b *body) Read(into []byte) (int, error) {
	if !b.whole {
		b.begun = true
		b.limit()
	}

	n, err := b.ReadCloser.Read(into)
	if errors.Is(err, io.EOF) && !b.whole {
		// With a deadline, the server would take a quiet client for one that has gone away.
		b.whole = true
		_ = b.flow.SetReadDeadline(time.Time{})
	}
	if b.held != nil {
		if refused := b.weigh(into[:n]); refused != nil {
			n, err = 0, refused
		}
	}
	return n, err
}

// limit gives the client time for the next part.
func (b *body) limit() {
	next := time.Now().Add(b.patience)
	if b.end.Before(next) {
		next = b.end
	}
	_ = b.flow.SetReadDeadline(next)
}

// leave gives the client time for a body that nobody has read: after the answer, the server reads
// what is left. A body that was read in part keeps its deadline.
func (b *body) leave() {
	if !b.whole && !b.begun {
		b.limit()
	}
}
