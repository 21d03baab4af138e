// Package guest is what runs inside a worker: the two interpreters, and the
// connection to the host. Nothing here is trusted by the host.
package guest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// maxStack ends endless recursion before it uses up the worker's memory.
const maxStack = 128 << 20

// Main serves one session on a connection and returns the worker's exit code.
func Main(conn *os.File) int { return Serve(conn) }

// Serve serves one session.
func Serve(conn io.ReadWriter) int {
	debug.SetMaxStack(maxStack)
	link := newLink(conn)
	golang, python := newGoSession(link), newPySession(link)
	warm(golang)
	if link.send(wire.KindReady, nil) != nil {
		return 1
	}
	runs := make(chan wire.Run)
	go func() {
		for run := range runs {
			var end wire.End
			if run.Language == "go" {
				end = golang.run(run.Source)
			} else {
				end = python.run(run.Source)
			}
			link.out.flush()
			end.Memory = held()
			if link.sendJSON(wire.KindEnd, end) != nil {
				return
			}
		}
	}()
	return link.listen(golang.setup, runs)
}

// held is the memory that the process has mapped.
func held() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()) //nolint:gosec // far below
}

// warm runs something harmless by both interpreters, so that a session's first
// snippet finds their code in memory. It leaves no name behind.
func warm(golang *goSession) {
	if golang.broken == nil {
		_, golang.broken = golang.yaegi.Eval("1 + 1")
	}
	if plan, _ := planGo("for i := 0; i < 3; i++ {\n}\n1 + 1", golang.known); plan == nil {
		golang.broken = errors.New("it cannot plan a snippet")
	}
	newPySession(newLink(nowhere{})).run("x = [i for i in range(3)]\nprint(len(x))\nx")
	runtime.GC()
	debug.SetGCPercent(gcPercent)
}

// gcPercent lets a worker, which is short-lived and bounded anyway, collect
// seldom.
const gcPercent = 400

// nowhere is the connection of a session that nobody listens to.
type nowhere struct{}

// Read reads nothing.
func (nowhere) Read([]byte) (int, error) { return 0, io.EOF }

// Write drops it.
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// link is the worker's end of the connection.
type link struct {
	in   *bufio.Reader
	out  *output
	host gorun.Link

	mu   sync.Mutex // guards conn's writes
	conn io.Writer
}

func newLink(conn io.ReadWriter) *link {
	l := &link{in: bufio.NewReader(conn), conn: conn}
	l.out = &output{link: l}
	l.host.Send = func(kind byte, message any) error {
		l.out.flush()
		return l.sendJSON(wire.Kind(kind), message)
	}
	return l
}

// listen takes the host's frames until the connection ends.
func (l *link) listen(setup func(wire.Setup), runs chan<- wire.Run) int {
	for {
		kind, body, err := wire.Read(l.in, wire.MaxFromHost)
		if err != nil {
			return 0
		}
		switch kind {
		case wire.KindSetup:
			var s wire.Setup
			if gorun.Decode(body, &s) != nil {
				return 1
			}
			if s.Memory > 0 { // collect more often near the limit instead of dying of it
				debug.SetMemoryLimit(s.Memory)
			}
			setup(s)
		case wire.KindRun:
			var r wire.Run
			if gorun.Decode(body, &r) != nil {
				return 1
			}
			runs <- r
		case wire.KindAnswer:
			if l.host.Answered(body) != nil {
				return 1
			}
		default:
			return 1
		}
	}
}

func (l *link) send(kind wire.Kind, body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return wire.Write(l.conn, kind, body)
}

func (l *link) sendJSON(kind wire.Kind, message any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return wire.WriteJSON(l.conn, kind, message)
}

// output gathers small writes: a snippet that prints a line at a time would
// otherwise spend its time on frames.
type output struct {
	link *link

	mu     sync.Mutex // guards what is gathered
	stream byte
	buf    []byte
}

// flushAt is how much is gathered. What a snippet has written is also sent when
// it ends or calls the host.
const flushAt = 4 << 10

func (o *output) write(stream byte, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stream != stream {
		o.send()
		o.stream = stream
	}
	for len(text) > 0 {
		n := min(len(text), wire.MaxOutput-len(o.buf))
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
		// A host that is gone ends the worker elsewhere.
		_ = o.link.send(wire.KindOutput, append([]byte{o.stream}, o.buf...))
		o.buf = o.buf[:0]
	}
}

// stream is one of the two, as a writer.
type stream struct {
	out  *output
	name byte
}

// Write takes a part of the output.
func (s stream) Write(text []byte) (int, error) {
	s.out.write(s.name, text)
	return len(text), nil
}
