//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The parent passes files to the worker on a separate socket, each time with a token. The message
// that names the token comes later. The worker never sends files back.

// maxFiles is the maximum number of files per token.
const maxFiles = 4

// sender sends files.
type sender struct {
	conn *net.UnixConn
	last atomic.Uint64
}

// sendTimeout bounds a send to a worker that does not accept its files.
const sendTimeout = 10 * time.Second

// send sends files. The caller still owns them.
func (s *sender) send(files ...*os.File) (token, error) {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	t := token(s.last.Add(1))
	number := binary.LittleEndian.AppendUint64(nil, uint64(t))
	if err := s.conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return 0, err
	}

	_, _, err := s.conn.WriteMsgUnix(number, unix.UnixRights(fds...), nil)
	if err != nil {
		err = fmt.Errorf("cannot send a file to the worker: %w", err)
	}
	return t, errors.Join(err, s.conn.SetWriteDeadline(time.Time{}))
}

// receiver receives files that the parent sends.
type receiver struct {
	socket *os.File

	mu      sync.Mutex
	arrived map[token][]*os.File
	changed chan struct{} // closed when the next files arrive
	failed  error
}

func newReceiver(socket *os.File) *receiver {
	r := &receiver{socket: socket, arrived: map[token][]*os.File{}, changed: make(chan struct{})}
	go r.readAll()
	return r
}

func (r *receiver) readAll() {
	for {
		number, files, err := receiveFiles(r.socket)
		r.mu.Lock()
		if err == nil && len(number) == 8 {
			r.arrived[token(binary.LittleEndian.Uint64(number))] = files
		}
		r.failed = err
		close(r.changed)
		r.changed = make(chan struct{})
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// take returns the files of a token. The caller then owns them.
func (r *receiver) take(ctx context.Context, t token) ([]*os.File, error) {
	for {
		r.mu.Lock()
		files, ok := r.arrived[t]
		delete(r.arrived, t)
		changed, failed := r.changed, r.failed
		r.mu.Unlock()
		switch {
		case ok:
			return files, nil
		case failed != nil:
			return nil, failed
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// takeOne returns the only file of a token.
func (r *receiver) takeOne(ctx context.Context, t token) (*os.File, error) {
	files, err := r.take(ctx, t)
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, errors.Join(errors.New("a file is missing"), closeAll(files))
	}
	return files[0], nil
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// receiveFiles reads one message with files.
func receiveFiles(socket *os.File) (data []byte, files []*os.File, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	data, oob := make([]byte, 64), make([]byte, unix.CmsgSpace(4*maxFiles))
	n, m := 0, 0
	readErr := raw.Read(func(fd uintptr) bool {
		n, m, _, _, err = unix.Recvmsg(int(fd), data, oob, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	if err := errors.Join(readErr, err); err != nil {
		return nil, nil, err
	}

	if n == 0 {
		return nil, nil, net.ErrClosed
	}

	messages, err := unix.ParseSocketControlMessage(oob[:m])
	if err != nil {
		return nil, nil, err
	}
	for _, message := range messages {
		fds, err := unix.ParseUnixRights(&message)
		if err != nil {
			return nil, nil, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}

	return data[:n], files, nil
}

// memoryFile creates an empty file in memory.
func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("rlm-workers", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("cannot make a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), "memory"), nil
}

// allSeals are the seals that make a file in memory immutable.
const allSeals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL

// sealedFile creates an immutable file in memory.
func sealedFile(write func(*os.File) error) (*os.File, error) {
	file, err := memoryFile()
	if err != nil {
		return nil, err
	}
	err = write(file)
	if err == nil {
		_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, allSeals)
	}

	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// sealedBytes is like sealedFile, for bytes.
func sealedBytes(data []byte) (*os.File, error) {
	return sealedFile(func(f *os.File) error {
		_, err := f.WriteAt(data, 0)
		return err
	})
}

// socketPair returns two connected sockets that preserve message boundaries.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
	}
	theirs = os.NewFile(uintptr(pair[1]), "files")
	own := os.NewFile(uintptr(pair[0]), "files")
	defer own.Close()
	conn, err := net.FileConn(own)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}

	return conn.(*net.UnixConn), theirs, nil //nolint:forcetypeassert // a pair of AF_UNIX
}
