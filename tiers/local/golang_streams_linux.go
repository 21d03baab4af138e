package local

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// goStreams are a program's outputs: pipes, so that what it wrote is there even
// if it died at once.
type goStreams struct {
	files   [2]*os.File
	reading sync.WaitGroup

	mu     sync.Mutex // guards what follows, and reading
	fds    [2]int
	out    *goOutput // of the turn that runs, nil between turns
	closed bool
	buf    [64 << 10]byte
}

// newGoStreams makes the pipes and gives the program its ends.
func newGoStreams(conn net.Conn) (*goStreams, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("the connection is no socket")
	}
	s := &goStreams{}
	var theirs []int
	defer func() {
		for _, fd := range theirs {
			_ = syscall.Close(fd) // sent, or of no use
		}
	}()
	for i := range s.files {
		var ends [2]int
		err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC)
		if err == nil {
			// Only this end: the program's runtime does not wait for its outputs.
			err = syscall.SetNonblock(ends[0], true)
			s.files[i], s.fds[i] = os.NewFile(uintptr(ends[0]), "output"), ends[0]
			theirs = append(theirs, ends[1])
		}
		if err != nil {
			s.close()
			return nil, fmt.Errorf("cannot make a pipe: %w", err)
		}
	}
	if _, _, err := socket.WriteMsgUnix([]byte{0}, syscall.UnixRights(theirs...), nil); err != nil {
		s.close()
		return nil, fmt.Errorf("cannot send a pipe: %w", err)
	}
	for i, file := range s.files {
		raw, err := file.SyscallConn()
		if err != nil {
			s.close()
			return nil, fmt.Errorf("cannot read a pipe: %w", err)
		}
		s.reading.Go(func() {
			_ = raw.Read(func(uintptr) bool { // until the file is closed
				for {
					s.mu.Lock()
					more, ended := s.pump(i)
					s.mu.Unlock()
					if !more {
						return ended
					}
				}
			})
		})
	}
	return s, nil
}

// attach makes what is written go to out, once it has taken what was written
// before it is called.
func (s *goStreams) attach(out *goOutput) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if out != nil {
		s.out = out
	}
	for i := range s.files {
		for range fullPipe {
			if more, _ := s.pump(i); !more {
				break
			}
		}
	}
	s.out = out
}

// fullPipe is how many reads empty the largest pipe that a program can have,
// while another goroutine of it fills it again.
const fullPipe = 1 << 20 / (64 << 10)

// pump takes a part of what is in a pipe now, and reports whether there may be
// more of it and whether the pipe has ended.
func (s *goStreams) pump(i int) (more, ended bool) {
	if s.closed || s.out == nil {
		return false, s.closed
	}
	n, err := syscall.Read(s.fds[i], s.buf[:])
	switch {
	case errors.Is(err, syscall.EINTR):
		return true, false
	case err != nil || n <= 0:
		return false, err == nil
	}
	s.out.write(i, s.buf[:n])
	return true, false
}

func (s *goStreams) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, file := range s.files {
		if file != nil {
			_ = file.Close() // it was only read
		}
	}
	s.reading.Wait()
}
