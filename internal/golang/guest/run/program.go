//go:build linux

package run

import (
	"encoding/json"
	"fmt"
	"math/rand" //nolint:depguard // for snippets: the generator that can be seeded
	"os"
	"path"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// maxStack ends infinite recursion before it exhausts the jail's memory.
const maxStack = 128 << 20

// program is the state of this process.
type program struct {
	conn      *os.File
	setup     Setup
	streams   [2]int // descriptors of the outputs, because a snippet may close its own
	snippets  []func()
	configure func()
	ended     chan ending     // of the current snippet
	left      map[string]bool // the files in the working folder after the last snippet

	link Link

	mu   sync.Mutex     // guards the fields below
	out  *frame.Writer  // writes to conn
	vars map[string]any // pointers
}

// ending describes how a snippet ended.
type ending struct {
	code      int
	exception *Exception
}

var self = &program{vars: map[string]any{}, ended: make(chan ending, 1)}

// connection is the descriptor that the relay passes to its program.
const connection = 3

// Main runs the snippets of a program on the host's orders. Before the first one, it fetches the
// session's setup and calls configure. It returns when the host has disconnected.
func Main(configure func(), snippets ...func()) {
	debug.SetMaxStack(maxStack)
	p := self
	p.configure, p.snippets = configure, snippets
	p.link.Send = p.send
	p.conn = os.NewFile(connection, "host")
	p.out = frame.NewWriter(p.conn, wire.MaxGoRequest)
	syscall.CloseOnExec(connection)
	p.streams = receiveStreams()
	p.reopenStreams()

	in := frame.NewReader(p.conn, wire.MaxAnswer)
	for {
		kind, payload, err := in.Next()
		if err != nil {
			return
		}
		switch kind {
		case wire.KindOrder:
			order, err := wire.ParseOrder(payload)
			if err != nil {
				die("cannot parse the host's message")
			}
			go p.run(order)
		case wire.KindAnswer:
			if err := p.link.TakeAnswer(payload); err != nil {
				die(err.Error())
			}
		}
	}
}

func die(why string) {
	fmt.Fprintln(os.Stderr, why)
	syscall.Exit(1)
}

// run carries out an order and reports how its snippet ended. The goroutine of a snippet that
// called os.Exit stays blocked, because its deferred functions must not run.
func (p *program) run(order wire.Order) {
	number := order.Flags >> wire.OrdinalShift
	if number < 1 || number > len(p.snippets) {
		die("unknown snippet")
	}
	p.mustSend(wire.KindBegun, order.Mark[:])
	if order.Flags&wire.FlagConfigure != 0 {
		p.prepare(order.Source)
	}
	p.reopenStreams()

	go func() {
		end := ending{code: wire.CodeOK}
		defer func() {
			if r := recover(); r != nil {
				end = ending{wire.CodeRaised, describePanic(r)}
			}
			p.end(end)
		}()
		p.snippets[number-1]()
	}()

	end := <-p.ended
	p.noteFiles()
	if end.exception != nil && p.link.Raise(*end.exception) != nil {
		die("cannot report an exception")
	}
	done := wire.Done{Mark: order.Mark, Code: end.code}
	p.mustSend(wire.KindDone, done.Append(nil))
}

// prepare fetches the session's setup and provides it to the snippets.
func (p *program) prepare(source string) {
	var s Session
	err := json.Unmarshal([]byte(source), &s)
	if err == nil {
		p.setup, err = p.link.Setup()
	}
	if err != nil {
		die("cannot parse the host's message: " + err.Error())
	}

	debug.SetMemoryLimit(s.Memory) // collect more often near the limit, to avoid exceeding it
	//nolint:staticcheck // a replay must draw the same numbers
	rand.Seed(s.Seed)
	p.configure()
}

// receiveStreams receives the outputs, which are pipes of the relay, over the connection.
func receiveStreams() [2]int {
	var first [1]byte
	rights := make([]byte, syscall.CmsgSpace(2*4))
	for {
		_, n, _, _, err := syscall.Recvmsg(connection, first[:], rights, syscall.MSG_CMSG_CLOEXEC)
		if err == syscall.EINTR {
			continue
		}
		messages, err := syscall.ParseSocketControlMessage(rights[:n])
		if err != nil || len(messages) != 1 {
			die("cannot parse the relay's message")
		}
		fds, err := syscall.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 2 {
			die("cannot parse the relay's message")
		}
		return [2]int{fds[0], fds[1]}
	}
}

// reopenStreams opens the outputs at their usual descriptors, at the start and after a snippet
// has closed one.
func (p *program) reopenStreams() {
	for i, file := range []**os.File{&os.Stdout, &os.Stderr} {
		if err := syscall.Dup3(p.streams[i], i+1, 0); err != nil {
			die(err.Error())
		}
		if _, err := (*file).Stat(); err != nil {
			*file = os.NewFile(uintptr(i+1), (*file).Name())
		}
	}
}

// end reports the end of the snippet, but only once.
func (p *program) end(end ending) {
	select {
	case p.ended <- end:
	default:
	}
}

// Exit replaces os.Exit in snippets.
func Exit(code int) {
	self.end(ending{wire.CodeExited, &Exception{
		Type:      "exit",
		Message:   fmt.Sprint(code),
		Traceback: fmt.Sprintf("exit status %d\n", code),
		Code:      code,
	}})
	select {}
}

// suffix matches the suffix that the compiler adds to names of snippets.
var suffix = regexp.MustCompile(`__[0-9]+(_[0-9]+)?\b`)

// describePanic describes a panic, with the lines of snippets in its stack. It must be called while
// the panicking frames still exist.
func describePanic(value any) *Exception {
	e := &Exception{Type: "panic"}
	switch v := value.(type) {
	case runtime.Error:
		e.Type, e.Message = "runtime.Error", v.Error()
	case error:
		e.Message = v.Error()
	case fmt.Stringer:
		e.Message = v.String()
	default:
		e.Message = fmt.Sprint(v)
	}

	var b strings.Builder
	fmt.Fprintf(&b, "panic: %s\n\n", e.Message)
	pcs := make([]uintptr, 200)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if file := path.Base(f.File); strings.HasPrefix(file, "snippet_") {
			name := strings.Replace(f.Function, "main.rlm__", "main.main__", 1)
			fmt.Fprintf(&b, "%s(...)\n\t%s:%d\n", suffix.ReplaceAllString(name, ""), file, f.Line)
		}
		if !more {
			break
		}
	}
	e.Traceback = b.String()
	return e
}

// send sends one frame. It ends the program if the host has disconnected, and returns an error for
// a frame that is too large.
func (p *program) send(kind byte, payload []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()

	err := p.out.Write(kind, payload)
	if err != nil && len(payload) <= wire.MaxGoRequest {
		syscall.Exit(1)
	}
	return err // the frame is too large
}

func (p *program) mustSend(kind byte, payload []byte) {
	if err := p.send(kind, payload); err != nil {
		die(err.Error())
	}
}
