package gate

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Time limits for clients. A slow client is cut off, so that it does not hold resources for long.
const (
	anyPatience = 30 * time.Second // to send the next part of a body, and to receive output
	wholeBody   = time.Minute      // for a whole body
	wholeUpload = 6 * time.Hour    // for the body of a large path

	restPatience = time.Second // for the next part of a refused body
)

// answer is a response that records its status.
type answer struct {
	http.ResponseWriter
	flow     *http.ResponseController
	patience time.Duration
	status   int
	route    string
	isWhole  bool // the gate has answered, so the handler's output is dropped
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.isWhole {
		return
	}
	if a.status == 0 {
		a.status = status
	}
	a.extend()
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(data []byte) (int, error) {
	if a.isWhole {
		return len(data), nil
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.extend()
	return a.ResponseWriter.Write(data)
}

// extend gives the client time for the next part. A test's recorder has no deadlines.
func (a *answer) extend() { _ = a.flow.SetWriteDeadline(time.Now().Add(a.patience)) }

// Unwrap lets [http.ResponseController] flush.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// body is the body of a request. Its parts must arrive in time, and their size is checked before
// they are decoded.
type body struct {
	io.ReadCloser
	flow     *http.ResponseController
	patience time.Duration
	end      time.Time
	begun    bool
	whole    bool // nothing is left to read

	most     int64 // bytes
	size     int64
	held     *share // nil for a body that is not kept in memory
	values   *share // memory for its decoded values
	heaviest int64
	scale    scale
	failed   error
	refuse   func(err error) // answers the request
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
	if b.failed != nil {
		return 0, b.failed
	}
	if !b.whole {
		b.begun = true
		b.limit()
	}

	n, err := b.ReadCloser.Read(into)
	if errors.Is(err, io.EOF) && !b.whole {
		// If a deadline remained, the server would mistake a quiet client for one that has gone
		// away.
		b.whole = true
		_ = b.flow.SetReadDeadline(time.Time{})
	}
	if b.failed = b.check(into[:n]); b.failed != nil {
		b.refuse(b.failed)
		return 0, b.failed
	}
	return n, err
}

// check refuses a part that makes the body too large.
func (b *body) check(part []byte) error {
	if b.size += int64(len(part)); b.size > b.most {
		return &http.MaxBytesError{Limit: b.most}
	}
	if b.held == nil {
		return nil
	}
	return b.weigh(part)
}

// Close implements [io.Closer]. The server itself closes the body; the rest may still be read.
func (b *body) Close() error { return nil }

// limit gives the client time for the next part.
func (b *body) limit() {
	next := time.Now().Add(b.patience)
	if b.end.Before(next) {
		next = b.end
	}
	_ = b.flow.SetReadDeadline(next)
}

// finish reads the rest of a body that the gate refused, or that the handler refused after reading
// a part of it, so that a client that sends the whole body before it reads receives the answer. It
// reads at most as much as a body may have.
func (b *body) finish(a *answer, most int64) {
	isRefused := a.isWhole || b.begun && a.status >= http.StatusBadRequest
	if !isRefused || b.whole {
		return
	}

	_ = a.flow.Flush() // other clients read it immediately
	b.patience = min(b.patience, restPatience)
	for buffer := make([]byte, 32<<10); most > 0; {
		b.limit()
		n, err := b.ReadCloser.Read(buffer)
		if most -= int64(n); err != nil {
			return
		}
	}
}

// leave gives the client time for a body that no handler read, because the server reads the rest
// after the answer. A partly read body keeps its deadline.
func (b *body) leave() {
	if !b.whole && !b.begun {
		b.limit()
	}
}
