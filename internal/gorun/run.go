//go:build linux

package gorun

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand" //nolint:depguard // of the snippets: the generator that can be seeded
	"os"
	"path"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
)

// maxStack ends endless recursion before it uses up the jail's memory.
const maxStack = 128 << 20

// session is the state of the one program that this process is.
type session struct {
	conn     *os.File
	setup    Setup
	streams  [2]int // descriptors of the outputs, kept for a snippet that closes its own
	snippets []func()
	ended    chan End // of the snippet that runs

	link Link

	mu   sync.Mutex     // guards writing to conn, and what follows
	vars map[string]any // pointers
}

var self = &session{vars: map[string]any{}, ended: make(chan End, 1)}

// connection is the descriptor that the jail gives to its guest.
const connection = 3

// Main runs a program: configure once the host has said what the session has,
// then the snippets as the host asks for them. It returns when the host is gone.
func Main(configure func(), snippets ...func()) {
	debug.SetMaxStack(maxStack)
	s := self
	s.snippets = snippets
	s.link.Send = s.send
	s.conn = os.NewFile(connection, "host")
	syscall.CloseOnExec(connection)
	s.streams = receive()
	s.reopen()
	in := bufio.NewReader(s.conn)
	kind, body, err := readFrame(in)
	if err != nil || kind != KindSetup || json.Unmarshal(body, &s.setup) != nil {
		fatal("cannot understand the host")
	}
	debug.SetMemoryLimit(s.setup.Memory) // collect more often near the limit instead of dying of it
	rand.Seed(s.setup.Seed)              //nolint:staticcheck // the same numbers when the session runs again
	configure()
	for {
		kind, body, err := readFrame(in)
		if err != nil {
			return
		}
		switch kind {
		case KindRun:
			var run Run
			if json.Unmarshal(body, &run) != nil || run.Snippet < 1 || run.Snippet > len(snippets) {
				fatal("there is no such snippet")
			}
			go s.run(run.Snippet)
		case KindAnswer:
			if err := s.link.Answered(body); err != nil {
				fatal(err.Error())
			}
		}
	}
}

func fatal(why string) {
	fmt.Fprintln(os.Stderr, why)
	syscall.Exit(1)
}

// run runs one snippet and tells the host how it ended. One that exited stays
// behind for ever: its deferred functions must not run.
func (s *session) run(n int) {
	s.reopen()
	go func() {
		end := End{Verdict: OK}
		defer func() {
			if r := recover(); r != nil {
				end = raised(r)
			}
			s.end(end)
		}()
		s.snippets[n-1]()
	}()
	end := <-s.ended
	end.Snippet = n
	if err := s.send(KindEnd, end); err != nil {
		fatal(err.Error())
	}
}

// receive takes the outputs, which are pipes of the host, from the connection.
func receive() [2]int {
	var first [1]byte
	rights := make([]byte, syscall.CmsgSpace(2*4))
	for {
		_, n, _, _, err := syscall.Recvmsg(connection, first[:], rights, syscall.MSG_CMSG_CLOEXEC)
		if err == syscall.EINTR {
			continue
		}
		messages, err := syscall.ParseSocketControlMessage(rights[:n])
		if err != nil || len(messages) != 1 {
			fatal("cannot understand the host")
		}
		fds, err := syscall.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 2 {
			fatal("cannot understand the host")
		}
		return [2]int{fds[0], fds[1]}
	}
}

// reopen puts the outputs where the program expects them, at first and after a
// snippet has closed one.
func (s *session) reopen() {
	for i, file := range []**os.File{&os.Stdout, &os.Stderr} {
		if err := syscall.Dup3(s.streams[i], i+1, 0); err != nil {
			fatal(err.Error())
		}
		if _, err := (*file).Stat(); err != nil {
			*file = os.NewFile(uintptr(i+1), (*file).Name())
		}
	}
}

// end says that the snippet has ended, unless it has already.
func (s *session) end(end End) {
	select {
	case s.ended <- end:
	default:
	}
}

// Exit is what os.Exit is in a snippet.
func Exit(code int) {
	self.end(End{Verdict: Exited, Code: code})
	select {}
}

// suffix is what the compiler's names have more than the snippet's.
var suffix = regexp.MustCompile(`__[0-9]+(_[0-9]+)?\b`)

// raised describes a panic by the lines of the snippets. It is called while the
// panicking frames are still there.
func raised(value any) End {
	end := End{Verdict: Raised, Type: "panic"}
	switch v := value.(type) {
	case runtime.Error:
		end.Type, end.Message = "runtime.Error", v.Error()
	case error:
		end.Message = v.Error()
	case fmt.Stringer:
		end.Message = v.String()
	default:
		end.Message = fmt.Sprint(v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "panic: %s\n\n", end.Message)
	pcs := make([]uintptr, 200)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if file := path.Base(frame.File); strings.HasPrefix(file, "snippet_") {
			name := strings.Replace(frame.Function, "main.rlm__", "main.main__", 1)
			fmt.Fprintf(&b, "%s(...)\n\t%s:%d\n", suffix.ReplaceAllString(name, ""), file, frame.Line)
		}
		if !more {
			break
		}
	}
	end.Traceback = b.String()
	return end
}

// send sends one frame with a message. It does not return to a program whose host
// is gone.
func (s *session) send(kind byte, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if writeFrame(s.conn, kind, body) != nil {
		syscall.Exit(1)
	}
	return nil
}
