// Package worker runs inside a worker. It holds the two interpreters, and the connection to the
// host. The host trusts nothing that a worker sends.
package worker

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/rlmhq/rlm/internal/golang/guest/run"
	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// maxStack ends endless recursion before it exhausts the worker's memory.
const maxStack = 128 << 20

// Main serves one session on a connection and returns the worker's exit code.
func Main(conn *os.File) int { return Serve(conn) }

// Serve serves one session.
func Serve(conn io.ReadWriter) int {
	debug.SetMaxStack(maxStack)
	w := newWorker(conn)
	w.golang, w.python = newGoSession(w.link), newPySession(w.link)
	warm(w.golang)
	if w.link.send(wire.KindReady, nil) != nil {
		return 1
	}

	return w.listen()
}

// worker serves one session.
type worker struct {
	link   *link
	in     *frame.Reader
	golang *goSession
	python *pySession
}

func newWorker(conn io.ReadWriter) *worker {
	return &worker{link: newLink(conn), in: frame.NewReader(conn, wire.MaxAnswer)}
}

// listen receives the host's frames until the connection ends.
func (w *worker) listen() int {
	orders := make(chan wire.Order)
	defer close(orders)
	go func() {
		for order := range orders {
			if w.obey(order) != nil {
				return // the host is gone
			}
		}
	}()

	for {
		kind, payload, err := w.in.Next()
		if err != nil {
			return 0
		}
		switch kind {
		case wire.KindOrder:
			order, err := wire.ParseOrder(payload)
			if err != nil {
				return 1
			}
			orders <- order
		case wire.KindAnswer:
			if w.link.host.TakeAnswer(payload) != nil {
				return 1
			}
		default:
			return 1
		}
	}
}

// obey runs one snippet and reports how it ended.
func (w *worker) obey(order wire.Order) error {
	if err := w.link.send(wire.KindBegun, order.Mark[:]); err != nil {
		return err
	}
	if order.Flags&wire.FlagConfigure != 0 {
		setup, err := w.link.host.Setup()
		if err != nil {
			return err
		}
		w.golang.setup(setup)
		w.python.setup(setup)
	}

	var end ending
	if order.Flags&wire.FlagGo != 0 {
		end = w.golang.run(order.Source, order.Flags>>wire.OrdinalShift)
	} else {
		end = w.python.run(order.Source)
	}

	if end.exception != nil {
		if err := w.link.host.Raise(*end.exception); err != nil {
			return err
		}
	}
	w.link.out.flush()

	more, err := json.Marshal(end.report)
	if err != nil {
		return err
	}

	done := wire.Done{Mark: order.Mark, Code: end.code, Peak: held(), More: more}
	return w.link.send(wire.KindDone, done.Append(nil))
}

// ending is how a snippet ended.
type ending struct {
	code      int // a code of package wire
	exception *run.Exception
	report    Report
}

// Report is the part of a snippet's ending that only workers report.
type Report struct {
	// Missing and Reason explain a rejection.
	Missing string `json:"missing"`
	Reason  string `json:"reason"`
	// IsInvalid reports that the interpreter could not compile the snippet, whether the snippet or
	// the interpreter is at fault. The snippet never ran.
	IsInvalid bool `json:"invalid"`
	// IsDirty reports that the namespace no longer matches the session's history. The host
	// must replace the worker.
	IsDirty bool `json:"dirty"`
	// Impure is the reason why another run of the snippet may have a different result; empty if it
	// cannot differ.
	Impure string `json:"impure"`
}

// rejected returns the ending of a snippet that never ran.
func rejected(missing, reason string) ending {
	return ending{code: wire.CodeRejected, report: Report{Missing: missing, Reason: reason}}
}

// held returns the size of the process's mapped memory, in bytes.
func held() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()) //nolint:gosec // far below
}

// warm runs a harmless snippet in both interpreters, so that their code is in memory before
// the session's first snippet. It declares no names.
func warm(golang *goSession) {
	if golang.broken == nil {
		_, golang.broken = golang.yaegi.Eval("1 + 1")
	}
	if plan, _ := planGo("for i := 0; i < 3; i++ {\n}\n1 + 1", golang.known, 0); plan == nil {
		golang.broken = errors.New("cannot plan the warm-up snippet")
	}

	newPySession(newLink(io.Discard)).run("x = [i for i in range(3)]\nprint(len(x))\nx")
	runtime.GC()
	debug.SetGCPercent(gcPercent)
}

// gcPercent makes garbage collection rare: a worker is short-lived, and its memory is bounded.
const gcPercent = 400

// link is the worker's end of the connection.
type link struct {
	out  *output
	host run.Link

	mu   sync.Mutex // guards writer
	conn *frame.Writer
}

func newLink(conn io.Writer) *link {
	l := &link{conn: frame.NewWriter(conn, wire.MaxGoRequest)}
	l.out = &output{link: l}
	l.host.Send = func(kind byte, payload []byte) error {
		l.out.flush()
		return l.send(kind, payload)
	}
	return l
}

func (l *link) send(kind byte, payload ...[]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn.Write(kind, payload...)
}

// output buffers small writes. Otherwise a snippet that prints line by line would spend most of its
// time on frames.
type output struct {
	link *link

	mu     sync.Mutex // guards the buffered text
	stream byte
	buf    []byte
}

// maxOutput bounds one frame of output, in bytes.
const maxOutput = 64 << 10

// flushAt is the size of the buffer, in bytes. The buffer is also sent when a snippet ends or
// calls the host.
const flushAt = 4 << 10

func (o *output) write(stream byte, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stream != stream {
		o.send()
		o.stream = stream
	}

	for len(text) > 0 {
		n := min(len(text), maxOutput-len(o.buf))
		o.buf = append(o.buf, text[:n]...)
		text = text[n:]
		if len(o.buf) >= flushAt {
			o.send()
		}
	}
}

func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.send()
}

func (o *output) send() {
	if len(o.buf) > 0 {
		// If the host is gone, other code ends the worker.
		head := append(wire.AppendRequest(nil, wire.NoAnswer), 'o', o.stream)
		_ = o.link.send(wire.KindRequest, head, o.buf)
		o.buf = o.buf[:0]
	}
}

// echo writes the value of the last expression. A value longer than a frame is written as output.
func (o *output) echo(text string) {
	if len(text) > maxOutput {
		o.write('1', []byte(text+"\n"))
		return
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	o.send()
	head := append(wire.AppendRequest(nil, wire.NoAnswer), 'h')
	_ = o.link.send(wire.KindRequest, head, []byte(text)) // as in send
}

// stream is a writer for stdout or stderr.
type stream struct {
	out  *output
	name byte
}

// Write adds text to the output.
func (s stream) Write(text []byte) (int, error) {
	s.out.write(s.name, text)
	return len(text), nil
}
