package dockerapi

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// streams are the standard streams of a container. Write writes to its standard input, and Read
// reads its standard output. Its standard error is passed to the function given to Start. Standard
// error has its own connection, so it arrives even if Read is not called.
type streams struct {
	out, errs *pieces
	ended     chan struct{} // closed after the end of standard error
	once      sync.Once
	err       error
}

// joinStreams connects the streams of a container.
func joinStreams(out, errs *pieces, stderr func([]byte)) *streams {
	s := &streams{out: out, errs: errs, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		part := make([]byte, 4<<10)
		for {
			n, err := errs.Read(part)
			if n > 0 {
				stderr(part[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// Read reads from the container's standard output. It does not support concurrent callers.
func (s *streams) Read(p []byte) (int, error) { return s.out.Read(p) }

// Write writes to the container's standard input.
func (s *streams) Write(p []byte) (int, error) { return s.out.conn.Write(p) }

// SetWriteDeadline bounds the time in which the container must accept written data.
func (s *streams) SetWriteDeadline(t time.Time) error { return s.out.conn.SetWriteDeadline(t) }

// Close closes the connections. It is idempotent.
func (s *streams) Close() error {
	s.once.Do(func() {
		s.err = errors.Join(s.out.conn.Close(), s.errs.conn.Close())
		<-s.ended
	})
	return s.err
}

// pieces reads one output of a container from a connection. The daemon sends outputs as pieces,
// with a header of eight bytes: the number of the stream, three zeros, and the length with the most
// significant byte first.
type pieces struct {
	conn  net.Conn
	in    *bufio.Reader
	which byte
	left  int // unread bytes of the current piece
}

// The streams, as numbered in headers.
const (
	streamOut = 1
	streamErr = 2
)

var errStream = errors.New("the daemon sent an invalid stream frame")

func (s *pieces) Read(p []byte) (int, error) {
	for s.left == 0 {
		var head [8]byte
		if _, err := io.ReadFull(s.in, head[:]); err != nil {
			return 0, err
		}
		if head[0] != s.which || head[1]|head[2]|head[3] != 0 {
			return 0, errStream
		}
		s.left = int(binary.BigEndian.Uint32(head[4:]))
	}

	n, err := s.in.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}
