package relay

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guests are programs for a relay. Each first takes its outputs from the connection, like the
// runtime of a session.
var guests = map[string]string{
	"talks": `write(1, "out"); write(2, "err")
frame('c', "{}"); frame('d', "{}")
kind, body := next()
write(1, "heard "+string(kind)+body)
syscall.Exit(3)`,
	"dies":   `write(1, "last words"); syscall.Kill(syscall.Getpid(), syscall.SIGKILL); select {}`,
	"forges": `frame('X', "{}"); select {}`,
	"floods": `syscall.Write(3, []byte{255, 255, 255, 255, 'C'}); select {}`,
	"leaves": `os.StartProcess("/proc/self/exe", []string{"main", "child"},
		&os.ProcAttr{Files: []*os.File{nil, nil, nil, os.NewFile(3, "")}}); syscall.Exit(0)`,
	"is deaf": `select {}`,
}

const guestHead = `package main

import (
	"encoding/binary"
	"io"
	"os"
	"syscall"
)

var fds []int

func write(stream int, text string) { syscall.Write(fds[stream-1], []byte(text)) }

func frame(kind byte, body string) {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	syscall.Write(3, append(append(head, kind), body...))
}

func next() (byte, string) {
	in := os.NewFile(3, "host")
	var head [5]byte
	io.ReadFull(in, head[:])
	body := make([]byte, binary.LittleEndian.Uint32(head[:]))
	io.ReadFull(in, body)
	return head[4], string(body)
}

func main() {
	if len(os.Args) > 1 {
		syscall.Pause()
	}
	rights := make([]byte, 100)
	_, n, _, _, _ := syscall.Recvmsg(3, make([]byte, 1), rights, 0)
	messages, _ := syscall.ParseSocketControlMessage(rights[:n])
	fds, _ = syscall.ParseUnixRights(&messages[0])
	map[string]func(){` // then come the guests, by name

// guestFolder returns a folder with a program for each guest.
func guestFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source := guestHead
	for name, body := range guests {
		source += "\n\"" + name + "\": func() {\n" + body + "\n},"
	}
	source += "\n}[os.Getenv(\"GUEST\")]()\n}\n"
	for file, text := range map[string]string{
		"main.go": source,
		"go.mod":  "module guest\n\ngo 1.24\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "guest", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return filepath.Join(dir, "guest")
}

// host is the other end of a relay's connection.
type host struct {
	conn  net.Conn
	in    *frame.Reader
	ended chan error
}

func start(t *testing.T, program, guest string) *host {
	t.Helper()
	ours, theirs := net.Pipe()
	h := &host{ours, frame.NewReader(ours, MaxFrame), make(chan error, 1)}
	go func() {
		h.ended <- serve(theirs, command{program, t.TempDir(), []string{"GUEST=" + guest}})
	}()
	h.send(t, KindStart, "")
	t.Cleanup(func() {
		if err := ours.Close(); err != nil {
			t.Error(err)
		}
		if err := <-h.ended; err != nil {
			t.Error(err)
		}
		_ = theirs.Close() // no longer needed
	})
	return h
}

func (h *host) send(t *testing.T, kind byte, body string) {
	t.Helper()
	if err := h.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := frame.NewWriter(h.conn, wire.MaxAnswer).Write(kind, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// until reads frames up to one of kind last, and returns their description, without the used
// resources.
func (h *host) until(t *testing.T, last byte) string {
	t.Helper()
	var said bytes.Buffer
	for {
		kind, body, err := h.in.Next()
		if err != nil {
			t.Fatalf("%v after %s", err, said.String())
		}
		if kind == KindUsage {
			var u Usage
			if err := frame.DecodeJSON(body, &u); err != nil || u.CPUNanos < 0 || u.PeakMemory < 0 {
				t.Errorf("%+v %v", u, err)
			}
			continue
		}
		said.WriteByte(kind)
		said.Write(body)
		said.WriteByte(';')
		if kind == last {
			return said.String()
		}
	}
}

func TestARelay(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command to make programs with")
	}
	program := guestFolder(t)
	t.Run("outputs come before the end", func(t *testing.T) {
		h := start(t, program, "talks")
		said := h.until(t, wire.KindDone)
		if !strings.HasSuffix(said, "d{};") || !strings.Contains(said, "c{};") ||
			!strings.Contains(said, "1out;") || !strings.Contains(said, "2err;") {
			t.Errorf("%s", said)
		}
		h.send(t, wire.KindOrder, "again")
		if said := h.until(t, KindExit); said != `1heard ragain;X{"code":3,"signal":0};` {
			t.Errorf("%s", said)
		}
	})
	for guest, want := range map[string]string{
		"dies": `1last words;X{"code":-1,"signal":9};`, "leaves": `X{"code":0,"signal":0};`,
		"forges": "P;", "floods": "P;",
	} {
		t.Run(guest, func(t *testing.T) {
			said := start(t, program, guest).until(t, want[strings.LastIndexAny(want, "XP")])
			if said != want {
				t.Errorf("%s, want %s", said, want)
			}
		})
	}
}

func TestARelayWithoutAHost(t *testing.T) {
	for sent, want := range map[string]string{
		"": "", "\x00\x00\x00\x00R": "is a frame of kind", "\x01\x00\x00\x00B": "larger than " +
			"its maximum",
	} {
		t.Run(sent, func(t *testing.T) {
			err := serve(struct {
				io.Reader
				io.Writer
			}{strings.NewReader(sent), io.Discard}, command{path: "/no/such/program"})
			if want == "" && err != nil ||
				want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q: %v", sent, err)
			}
		})
	}
}
