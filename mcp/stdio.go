package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/mcp/tools"
)

// lastAnswers is how long requests may still run after the client has closed its side.
const lastAnswers = time.Minute

// ServeStdio serves one client over JSON lines, until it closes its side or the context ends. It
// then answers the requests that have already arrived, within a minute; otherwise it returns an
// error. A line that is not a message gets an error.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	defer context.AfterFunc(ctx, func() { s.end(errServerClosed) })()
	t := &stdio{
		lines: bufio.NewReader(tools.BoundLines(in)), in: in, out: out,
		waiting: map[jsonrpc.ID]bool{}, asked: map[jsonrpc.ID]bool{}, changed: make(chan struct{}, 1),
	}

	err := s.server.Run(ctx, t)
	if errors.Is(err, io.EOF) {
		err = nil
	}

	if left := t.unanswered(); err == nil && left > 0 && ctx.Err() == nil {
		return fmt.Errorf("the client closed its side too early: %d of its requests had no answer", left)
	}
	return err
}

// stdio is a transport and its only connection. The library's own transport drops active requests
// when the input ends, and ends at a line that is not a message.
type stdio struct {
	mcp.Connection

	lines *bufio.Reader
	in    io.Closer
	rest  []byte // the unread rest of the last line
	ended error  // why there are no more lines; set before the library gets the error

	writing sync.Mutex
	out     io.WriteCloser

	counting sync.Mutex
	waiting  map[jsonrpc.ID]bool // unanswered requests of the client
	asked    map[jsonrpc.ID]bool // unanswered requests to the client
	left     int                 // requests that were still unanswered after the end of the input
	changed  chan struct{}
}

// Connect implements [mcp.Transport].
func (t *stdio) Connect(ctx context.Context) (mcp.Connection, error) {
	inner := &mcp.IOTransport{Reader: stdioReader{t}, Writer: stdioWriter{t}, MaxLineLength: -1} // bounded
	var err error
	t.Connection, err = inner.Connect(ctx)
	return t, err
}

// Read implements [mcp.Connection]. At the end of the input it waits for the answers.
func (t *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		message, err := t.Connection.Read(ctx)
		switch {
		case err == nil:
			t.noteRead(message)
			return message, nil
		case ctx.Err() != nil:
			return nil, err
		case errors.Is(err, io.EOF):
			t.awaitAnswers(ctx)
			return nil, err
		case t.isOver(err):
			return nil, err
		}
		if err := t.refuse(jsonrpc.CodeInvalidRequest, notAMessage); err != nil {
			return nil, err
		}
	}
}

const notAMessage = "invalid request: the line is not a message of JSON-RPC 2.0; " +
	"it needs jsonrpc and method, and a request an id that is not in use"

// isOver reports whether an error of the library means that the input has ended.
func (t *stdio) isOver(err error) bool {
	t.counting.Lock()
	defer t.counting.Unlock()
	return t.ended != nil && errors.Is(err, t.ended)
}

// Write implements [mcp.Connection].
func (t *stdio) Write(ctx context.Context, message jsonrpc.Message) error {
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		t.note(func() { t.asked[request.ID] = true })
	}
	err := t.Connection.Write(ctx, message)
	if response, ok := message.(*jsonrpc.Response); ok {
		t.note(func() { delete(t.waiting, response.ID) })
	}
	return err
}

// noteRead counts a message of the client. A subscription has no answer.
func (t *stdio) noteRead(message jsonrpc.Message) {
	switch message := message.(type) {
	case *jsonrpc.Request:
		if message.IsCall() && message.Method != "subscriptions/listen" {
			t.note(func() { t.waiting[message.ID] = true })
		}
	case *jsonrpc.Response:
		t.note(func() { delete(t.asked, message.ID) })
	}
}

func (t *stdio) note(change func()) {
	t.counting.Lock()
	defer t.counting.Unlock()
	change()

	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// awaitAnswers waits until all requests are answered, until a request waits for the client, which
// is gone, or until the time is over.
func (t *stdio) awaitAnswers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastAnswers)
	defer cancel()

	for {
		if t.isDone() {
			return
		}

		select {
		case <-t.changed:
		case <-ctx.Done():
			return
		}
	}
}

// isDone reports whether to stop waiting for answers: because there are none left, or because a
// request waits for the client.
func (t *stdio) isDone() bool {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.left = len(t.waiting)
	return t.left == 0 || len(t.asked) > 0
}

// unanswered returns the number of the client's requests that were not answered in time.
func (t *stdio) unanswered() int {
	t.counting.Lock()
	defer t.counting.Unlock()
	return t.left
}

// refuse sends the client an error without an ID, for a message that cannot be read.
func (t *stdio) refuse(code int, reason string) error {
	line, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": reason},
	})
	if err != nil {
		return err
	}
	_, err = stdioWriter{t}.Write(append(line, '\n'))
	return err
}

// stdioReader passes on the lines that are JSON.
type stdioReader struct{ *stdio }

// Read implements [io.Reader].
func (t stdioReader) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		line, err := t.lines.ReadBytes('\n')
		if text := bytes.TrimSpace(line); len(text) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			if json.Valid(text) {
				t.rest = slices.Concat(text, []byte{'\n'})
				break
			}
			if refused := t.refuse(jsonrpc.CodeParseError,
				"parse error: the line is not JSON; write each message as one line of JSON"); refused != nil {
				err = refused
			}
		}
		if err != nil {
			t.note(func() { t.ended = err })
			return 0, err
		}
	}

	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (t stdioReader) Close() error { return t.in.Close() }

// stdioWriter writes one message at a time.
type stdioWriter struct{ *stdio }

// Write implements [io.Writer].
func (t stdioWriter) Write(p []byte) (int, error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	return t.out.Write(p)
}

// Close implements [io.Closer].
func (t stdioWriter) Close() error { return t.out.Close() }
