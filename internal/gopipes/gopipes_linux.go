package gopipes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// Pipes are a program's outputs.
type Pipes struct {
	files   [2]*os.File
	reading sync.WaitGroup

	mu     sync.Mutex // guards what follows, and reading
	fds    [2]int
	sink   Sink // nil between turns
	closed bool
	buf    [64 << 10]byte
}

// New makes the pipes and sends the program its ends, with one byte, over a
// connection that is a Unix socket.
func New(conn net.Conn) (*Pipes, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("the connection is no socket")
	}
	p := &Pipes{}
	var theirs []int
	defer func() {
		for _, fd := range theirs {
			_ = syscall.Close(fd) // sent, or of no use
		}
	}()
	for i := range p.files {
		var ends [2]int
		err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC)
		if err == nil {
			// Only this end: the program's runtime does not wait for its outputs.
			err = syscall.SetNonblock(ends[0], true)
			p.files[i], p.fds[i] = os.NewFile(uintptr(ends[0]), "output"), ends[0]
			theirs = append(theirs, ends[1])
		}
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("cannot make a pipe: %w", err)
		}
	}
	if _, _, err := socket.WriteMsgUnix([]byte{0}, syscall.UnixRights(theirs...), nil); err != nil {
		p.Close()
		return nil, fmt.Errorf("cannot send a pipe: %w", err)
	}
	for i, file := range p.files {
		raw, err := file.SyscallConn()
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("cannot read a pipe: %w", err)
		}
		p.reading.Go(func() {
			_ = raw.Read(func(uintptr) bool { // until the file is closed
				for {
					p.mu.Lock()
					more, ended := p.pump(i)
					p.mu.Unlock()
					if !more {
						return ended
					}
				}
			})
		})
	}
	return p, nil
}

// Attach makes what is written go to sink, nil for nowhere: it then waits in the
// pipes. When Attach returns, what was written before it was called has been taken,
// by the sink if there is one, else by that of before.
func (p *Pipes) Attach(sink Sink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sink != nil {
		p.sink = sink
	}
	for i := range p.files {
		for range fullPipe {
			if more, _ := p.pump(i); !more {
				break
			}
		}
	}
	p.sink = sink
}

// fullPipe is how many reads empty the largest pipe that a program can have,
// while another goroutine of it fills it again.
const fullPipe = 1 << 20 / (64 << 10)

// pump takes a part of what is in a pipe now, and reports whether there may be
// more of it and whether the pipe has ended.
func (p *Pipes) pump(i int) (more, ended bool) {
	if p.closed || p.sink == nil {
		return false, p.closed
	}
	n, err := syscall.Read(p.fds[i], p.buf[:])
	switch {
	case errors.Is(err, syscall.EINTR):
		return true, false
	case err != nil || n <= 0:
		return false, err == nil
	}
	p.sink(i, p.buf[:n])
	return true, false
}

// Close lets go of the pipes.
func (p *Pipes) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for _, file := range p.files {
		if file != nil {
			_ = file.Close() // it was only read
		}
	}
	p.reading.Wait()
}
