package llmtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
)

// Fault is a way to fail.
type Fault struct {
	When  func(llm.Request) bool // which requests it fits; nil for all
	Times int                    // how often it is applied: 0 is once, negative is always
	Alter func(*Reply, Exchange)
}

// Exchange is what a fault is applied to.
type Exchange struct {
	Request  llm.Request
	Response llm.Response
	Stream   bool
	format   format
}

// Reply is what goes back, as bytes. A fault may change all of it.
type Reply struct {
	Status int
	Header http.Header
	Chunks [][]byte // sent one by one; of a stream, its events
	Delay  time.Duration
	Cut    bool // break the connection after the chunks
	Stall  bool // send no more after the chunks, and wait for the client to go
}

// failed returns an error in a format.
func failed(f format, status int, code, message string) *Reply {
	return &Reply{
		Status: status, Header: http.Header{"Content-Type": {"application/json"}},
		Chunks: [][]byte{f.failure(status, code, message)},
	}
}

// write sends a reply.
func (r *Reply) write(w http.ResponseWriter, req *http.Request, gone <-chan struct{}) {
	if r.Delay > 0 {
		timer := time.NewTimer(r.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-req.Context().Done():
			return
		case <-gone:
			return
		}
	}
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	if len(r.Chunks) > 1 || r.Cut || r.Stall {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(r.Status)
	out := http.NewResponseController(w)
	for _, chunk := range r.Chunks {
		if _, err := w.Write(chunk); err != nil {
			return
		}
		if len(r.Chunks) > 1 || r.Cut || r.Stall {
			if err := out.Flush(); err != nil {
				return
			}
		}
	}
	if r.Stall {
		select {
		case <-req.Context().Done():
		case <-gone:
		}
	}
	if r.Cut {
		panic(http.ErrAbortHandler) // net/http's way to break a connection
	}
}

// Status answers with a status and an error in the request's format. A code
// such as "context_length_exceeded" may be empty, and so may Retry-After.
func Status(status int, code, message, retryAfter string) Fault {
	return Fault{Alter: func(r *Reply, e Exchange) {
		*r = *failed(e.format, status, code, message)
		if retryAfter != "" {
			r.Header.Set("Retry-After", retryAfter)
		}
	}}
}

// Slow waits before the first byte.
func Slow(delay time.Duration) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) { r.Delay = delay }}
}

// Cut breaks the connection after so many bytes of the reply.
func Cut(after int) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) { r.truncate(after); r.Cut = true }}
}

// End ends a reply in its middle, after so many bytes, as if it were whole.
func End(after int) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) { r.truncate(after) }}
}

// Stall sends so many bytes of the reply, and no more.
func Stall(after int) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) { r.truncate(after); r.Stall = true }}
}

// truncate keeps so many bytes of the chunks.
func (r *Reply) truncate(n int) {
	var kept [][]byte
	for _, chunk := range r.Chunks {
		chunk = chunk[:min(n, len(chunk))]
		n -= len(chunk)
		kept = append(kept, chunk)
	}
	r.Chunks = kept
}

// Replace replaces each occurrence of a text in the reply by another, such as
// a brace by rubbish.
func Replace(old, replacement string) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) {
		for i, chunk := range r.Chunks {
			r.Chunks[i] = bytes.ReplaceAll(chunk, []byte(old), []byte(replacement))
		}
	}}
}

// Usage puts JSON of any kind, such as -1, into the place of each usage.
func Usage(raw string) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) {
		for i, chunk := range r.Chunks {
			r.Chunks[i] = replaceUsage(chunk, raw)
		}
	}}
}

// replaceUsage replaces the objects called "usage" in a chunk.
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

// Huge answers with a text of so many bytes.
func Huge(size int) Fault {
	return Fault{Alter: func(r *Reply, e Exchange) {
		e.Response.Text = string(bytes.Repeat([]byte("spam "), size/5))
		*r = *render(e.format, e.Response, e.Stream, nil)
	}}
}

// Redirect sends the client elsewhere.
func Redirect(status int, to string) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) {
		*r = Reply{Status: status, Header: http.Header{"Location": {to}}}
	}}
}

// StreamError breaks a stream by an error in its format, after so many events.
// A reply that is not streamed is left alone.
func StreamError(after int, code, message string) Fault {
	return Fault{Alter: func(r *Reply, e Exchange) {
		if e.Stream {
			event := append([]byte("data: "), e.format.failure(http.StatusOK, code, message)...)
			r.Chunks = append(r.Chunks[:min(after, len(r.Chunks))], append(event, "\n\n"...))
		}
	}}
}

// Body answers with any bytes, as if they were good.
func Body(contentType, body string) Fault {
	return Fault{Alter: func(r *Reply, _ Exchange) {
		*r = Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {contentType}}, Chunks: [][]byte{[]byte(body)}}
	}}
}
