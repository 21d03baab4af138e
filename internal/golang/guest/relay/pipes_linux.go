package relay

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// pipes are a program's two outputs. They preserve output even if the program dies immediately.
type pipes struct {
	files   [2]*os.File
	reading sync.WaitGroup

	mu       sync.Mutex // guards the fields below, and reading
	fds      [2]int
	sink     func(stream int, text []byte)
	isClosed bool
	buf      [64 << 10]byte
}

// newPipes creates the pipes, and sends the program's ends to it over the connection, with one
// byte. It passes the program's output to sink, in parts of stream 0 (standard output) or 1
// (standard error), which are valid until sink returns.
func newPipes(conn *net.UnixConn, sink func(stream int, text []byte)) (*pipes, error) {
	p := &pipes{sink: sink}
	var theirs []int
	defer func() {
		for _, fd := range theirs {
			_ = syscall.Close(fd) // the descriptor has been sent, or is useless
		}
	}()

	for i := range p.files {
		var ends [2]int
		err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC)
		if err == nil {
			// Only this end is non-blocking, because the program's runtime cannot wait for
			// non-blocking outputs.
			err = syscall.SetNonblock(ends[0], true)
			p.files[i], p.fds[i] = os.NewFile(uintptr(ends[0]), "output"), ends[0]
			theirs = append(theirs, ends[1])
		}

		if err != nil {
			p.close()
			return nil, fmt.Errorf("cannot make a pipe: %w", err)
		}
	}

	if _, _, err := conn.WriteMsgUnix([]byte{0}, syscall.UnixRights(theirs...), nil); err != nil {
		p.close()
		return nil, fmt.Errorf("cannot send a pipe: %w", err)
	}
	if err := p.startReading(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pipes) startReading() error {
	for i, file := range p.files {
		raw, err := file.SyscallConn()
		if err != nil {
			return fmt.Errorf("cannot read a pipe: %w", err)
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

	return nil
}

// fullPipe is the number of reads that empty a program's largest possible pipe. It bounds the reads
// while another thread of the program refills the pipe.
const fullPipe = 1 << 20 / (64 << 10)

// drain passes on all output written before the call.
func (p *pipes) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()

	for i := range p.files {
		for range fullPipe {
			if more, _ := p.pump(i); !more {
				break
			}
		}
	}
}

// pump passes on a part of a pipe's content. It reports whether the pipe may contain more, and
// whether the stream has ended.
func (p *pipes) pump(i int) (more, ended bool) {
	if p.isClosed {
		return false, true
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

func (p *pipes) close() {
	p.mu.Lock()
	p.isClosed = true
	p.mu.Unlock()

	for _, file := range p.files {
		if file != nil {
			_ = file.Close() // only read from
		}
	}

	p.reading.Wait()
}
