package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// lingering bounds how long the relay keeps reading the connection of a program that has ended,
// because one of its children may keep the connection open.
const lingering = 100 * time.Millisecond

// relay is a program with the connection to its host.
type relay struct {
	program *net.UnixConn
	pipes   *pipes
	pid     int

	mu   sync.Mutex // guards writing
	out  *frame.Writer
	last Usage // the last report sent
}

// Run waits for the host's order, runs the program at Path, and relays its frames. After the
// program's end, it waits until the host closes the connection. It reaps all processes below its
// own. It adds env, each NAME=VALUE, to the program's environment. It returns an error if the host
// violates the protocol or the program cannot start.
func Run(conn io.ReadWriter, env []string) error {
	return serve(conn, command{Path, workFolder, append(environment, env...)})
}

// command returns the command that a relay starts.
type command struct {
	path, dir string
	env       []string
}

func serve(conn io.ReadWriter, program command) error {
	r := &relay{out: frame.NewWriter(conn, MaxFrame)}
	kind, _, err := frame.NewReader(conn, 0).Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil // the host did not use the relay
	case err != nil:
		return err
	case kind != KindStart:
		return fmt.Errorf("cannot parse the host's message: it is a frame of kind %q", kind)
	}

	ended, err := r.start(program)
	if err != nil {
		return fmt.Errorf("cannot start the program: %w", err)
	}
	defer r.close()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(r.program, conn) // other code notices the end of a program that no longer reads
		_, _ = io.Copy(io.Discard, conn)
	}()

	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		r.forward()
	}()
	ticker := time.NewTicker(usageEvery)
	defer ticker.Stop()

	for {
		select {
		case exit := <-ended:
			_ = r.program.SetReadDeadline(time.Now().Add(lingering)) // the connection is still open
			<-forwarded
			r.pipes.drain()
			r.usage(true)
			r.send(KindExit, exit)
			<-gone
			return nil
		case <-ticker.C:
			r.usage(false)
		case <-gone:
			return nil
		}
	}
}

// start starts the program with one end of a socket and its pipes. The channel receives the
// program's exit.
func (r *relay) start(program command) (<-chan Exit, error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "program"), os.NewFile(uintptr(ends[1]), "host")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err := errors.Join(err, ours.Close()); err != nil {
		return nil, err
	}

	r.program, _ = conn.(*net.UnixConn) // the socket is a Unix socket
	if r.pipes, err = newPipes(r.program, r.output); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		r.close()
		return nil, err
	}

	defer null.Close()
	nowhere := null.Fd()
	r.pid, err = syscall.ForkExec(program.path, []string{"main"}, &syscall.ProcAttr{
		Dir:   program.dir,
		Env:   program.env,
		Files: []uintptr{nowhere, nowhere, nowhere, theirs.Fd()},
	})
	if err != nil {
		r.close()
		return nil, fmt.Errorf("%s: %w", program.path, err)
	}

	ended := make(chan Exit, 1)
	go reap(r.pid, ended)

	return ended, nil
}

// reap waits for the program. As the first process of a container, which inherits orphans, it
// waits for all processes.
func reap(program int, ended chan<- Exit) {
	which := program
	if os.Getpid() == 1 {
		which = -1
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(which, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return
		case pid == program && status.Signaled(): //nolint:misspell // the name of package syscall
			ended <- Exit{Code: -1, Signal: int(status.Signal())}
		case pid == program:
			ended <- Exit{Code: status.ExitStatus()}
		}
	}
}

// forward forwards the program's frames until the program's connection ends.
func (r *relay) forward() {
	in := frame.NewReader(r.program, wire.MaxGoRequest)
	for {
		kind, body, err := in.Next()
		switch {
		case errors.Is(err, frame.ErrTooLarge), err == nil && isReserved(kind):
			r.frame(KindBroke, nil)
			return
		case err != nil:
			return
		}

		if kind == wire.KindDone {
			r.pipes.drain() // earlier output is sent first
			r.usage(true)
		}
		r.frame(kind, body)
	}
}

func (r *relay) close() {
	_ = r.program.Close() // the program receives no more orders
	r.pipes.close()
}

// output sends a part of an output stream.
func (r *relay) output(stream int, text []byte) {
	r.frame([]byte{KindStdout, KindStderr}[stream], text)
}

// send sends a message of the relay.
func (r *relay) send(kind byte, message any) {
	body, err := json.Marshal(message)
	if err != nil {
		panic(err) // numbers can be encoded
	}
	r.frame(kind, body)
}

// frame sends one frame. It ignores errors, because reading reports that the host has disconnected.
func (r *relay) frame(kind byte, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Write(kind, body)
}
