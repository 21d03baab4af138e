package llmtest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
)

// Fault is a kind of failure. The functions of this package create faults.
type Fault struct {
	When  func(llm.Request) bool // the requests that it affects; nil for all
	Times int                    // how often it applies; 0 means once, a negative number always
	Alter func(*Reply, Exchange)
}

// Exchange is the request and the response that a fault applies to.
type Exchange struct {
	Request  llm.Request
	Response llm.Response
	Stream   bool
	format   format
}

// Reply is the bytes sent by the server. A fault may change any part of it.
type Reply struct {
	Status int
	Header http.Header
	Chunks [][]byte // sent one by one; the events of a stream
	Delay  time.Duration
	Cut    bool // breaks the connection after the chunks
	Stall  bool // sends nothing after the chunks, and waits for the client to leave
}

// newFailure returns an error in a format.
func newFailure(f format, status int, code, message string) *Reply {
	return &Reply{
		Status: status, Header: http.Header{"Content-Type": {"application/json"}},
		Chunks: [][]byte{f.failure(status, code, message)},
	}
}

// write sends a reply. It stops when the client leaves, or when gone is closed.
func (r *Reply) write(w http.ResponseWriter, req *http.Request, gone <-chan struct{}) {
	if !r.delay(req, gone) {
		return
	}
	if !r.writeChunks(w) {
		return
	}

	if r.Stall {
		select {
		case <-req.Context().Done():
		case <-gone:
		}
	}

	if r.Cut {
		panic(http.ErrAbortHandler) // net/http then breaks the connection
	}
}

// delay waits before the first byte, and reports whether the client is still connected.
func (r *Reply) delay(req *http.Request, gone <-chan struct{}) bool {
	if r.Delay <= 0 {
		return true
	}
	timer := time.NewTimer(r.Delay)
	defer timer.Stop()

	select {
	case <-timer.C:
		return true
	case <-req.Context().Done():
	case <-gone:
	}
	return false
}

// writeChunks sends the header and the chunks, and reports whether the client accepted them.
func (r *Reply) writeChunks(w http.ResponseWriter) bool {
	inPieces := len(r.Chunks) > 1 || r.Cut || r.Stall
	maps.Copy(w.Header(), r.Header)
	if inPieces {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(r.Status)

	out := http.NewResponseController(w)
	for _, chunk := range r.Chunks {
		if _, err := w.Write(chunk); err != nil {
			return false
		}

		if inPieces {
			if err := out.Flush(); err != nil {
				return false
			}
		}
	}
	return true
}

// Status answers with a status and an error in the request's format. The code, such as
// "context_length_exceeded", and Retry-After may be empty.
func Status(status int, code, message, retryAfter string) Fault {
	return Fault{Alter: func(r *Reply, e Exchange) {
		*r = *newFailure(e.format, status, code, message)
		if retryAfter != "" {
			r.Header.Set("Retry-After", retryAfter)
		}
	}}
}

// Slow waits before the first byte.
func Slow(delay time.Duration) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) { r.Delay = delay }}
}

// Cut breaks the connection after a number of bytes of the reply.
func Cut(after int) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) { r.truncate(after); r.Cut = true }}
}

// End ends a reply after a number of bytes, as if it were complete.
func End(after int) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) { r.truncate(after) }}
}

// Stall sends a number of bytes of the reply, and then nothing more.
func Stall(after int) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) { r.truncate(after); r.Stall = true }}
}

// truncate keeps the first n bytes of the chunks.
func (r *Reply) truncate(n int) {
	var kept [][]byte
	for _, chunk := range r.Chunks {
		chunk = chunk[:min(n, len(chunk))]
		n -= len(chunk)
		kept = append(kept, chunk)
	}

	r.Chunks = kept
}

// Replace replaces each occurrence of a string in the reply.
func Replace(old, replacement string) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) {
		for i, chunk := range r.Chunks {
			r.Chunks[i] = bytes.ReplaceAll(chunk, []byte(old), []byte(replacement))
		}
	}}
}

// Finish replaces the finish reason of complete replies.
func Finish(word string) Fault {
	return Fault{Alter: func(r *Reply, e Exchange) {
		Replace(`"`+e.format.finish()+`"`, string(encode(word))).Alter(r, e)
	}}
}

// Usage replaces each usage in the reply with any JSON, such as -1.
func Usage(raw string) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) {
		for i, chunk := range r.Chunks {
			r.Chunks[i] = replaceUsage(chunk, raw)
		}
	}}
}

// replaceUsage replaces the first member "usage" in a chunk.
func replaceUsage(chunk []byte, raw string) []byte {
	mark := []byte(`"usage":`)
	before, after, found := bytes.Cut(chunk, mark)
	if !found {
		return chunk
	}

	var old json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(after))
	if err := decoder.Decode(&old); err != nil {
		return chunk
	}

	rest := after[decoder.InputOffset():]
	return bytes.Join([][]byte{before, mark, []byte(raw), rest}, nil)
}

// Huge answers with a reply of size bytes.
func Huge(size int) Fault {
	return Fault{Alter: func(r *Reply, e Exchange) {
		e.Response.Text = string(bytes.Repeat([]byte("spam "), size/5))
		*r = *render(e.format, e.Response, e.Stream, nil)
	}}
}

// Redirect redirects the client to another address.
func Redirect(status int, to string) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) {
		*r = Reply{Status: status, Header: http.Header{"Location": {to}}}
	}}
}

// StreamError ends a stream with an error in its format, after a number of events. It
// does not change a reply that is not streamed.
func StreamError(after int, code, message string) Fault {
	return Fault{Alter: func(r *Reply, e Exchange) {
		if e.Stream {
			event := append([]byte("data: "), e.format.failure(http.StatusOK, code, message)...)
			r.Chunks = append(r.Chunks[:min(after, len(r.Chunks))], append(event, "\n\n"...))
		}
	}}
}

// Body answers with the given bytes and the status 200.
func Body(contentType, body string) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) {
		*r = Reply{
			Status: http.StatusOK,
			Header: http.Header{"Content-Type": {contentType}},
			Chunks: [][]byte{[]byte(body)},
		}
	}}
}
