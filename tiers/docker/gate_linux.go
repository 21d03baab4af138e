package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/internal/wall/egress"
)

// proxyPort is the port of the proxy in the guest. gateFolder holds the socket over which the
// first process passes the proxy's listener to the host: see guest.py.
const (
	proxyPort  = 3128
	gateFolder = "/egress"
)

// gate is the socket on which the host receives a container's listener. On the host, it is in a
// folder that only this user can enter. The container has access to the inner folder, to whose
// socket all users may connect, only while it starts.
type gate struct {
	outer, inner string
	socket       *net.UnixListener
}

func newGate() (*gate, error) {
	outer, err := os.MkdirTemp("", "rlm-egress-")
	if err != nil {
		return nil, fmt.Errorf("cannot prepare a container's proxy: %w", err)
	}
	g := &gate{outer: outer, inner: filepath.Join(outer, "gate")}
	name := filepath.Join(g.inner, "host")
	err = os.Mkdir(g.inner, 0o755) //nolint:gosec // the outer folder is closed
	if err == nil {
		err = os.Chmod(g.inner, 0o755) //nolint:gosec // independent of the umask
	}
	if err == nil {
		g.socket, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	}
	if err == nil {
		err = os.Chmod(name, 0o666) //nolint:gosec // for the container's user
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot prepare a container's proxy: %w", err), g.close())
	}

	return g, nil
}

// close removes the gate.
func (g *gate) close() error {
	if g.socket != nil {
		_ = g.socket.Close() // nothing was written
	}
	return os.RemoveAll(g.outer)
}

// spec adds the proxy's mounts and variables to a container.
func (g *gate) spec(s *dockerapi.Spec) {
	s.Proxy = true
	s.Mounts = append(
		append([]dockerapi.Mount(nil), s.Mounts...),
		dockerapi.Mount{Source: g.inner, Target: gateFolder},
	)
	if file := egress.HostCertificates(); file != "" {
		s.Mounts = append(s.Mounts, dockerapi.Mount{Source: file, Target: egress.Certificates})
	}

	s.Env = append(append([]string(nil), s.Env...), egress.Environment(proxyPort)...)
	s.Env = append(s.Env, fmt.Sprintf("RLM_EGRESS=%s/host", gateFolder))
}

// listener waits for the listener in the container's network.
func (g *gate) listener(ctx context.Context) (net.Listener, error) {
	if deadline, ok := ctx.Deadline(); ok {
		if err := g.socket.SetDeadline(deadline); err != nil {
			return nil, fmt.Errorf("cannot wait for a container's proxy: %w", err)
		}
	}
	stopWaiting := func() { _ = g.socket.SetDeadline(time.Now()) }
	defer context.AfterFunc(ctx, stopWaiting)()

	conn, err := g.socket.AcceptUnix()
	if err != nil {
		return nil, fmt.Errorf(
			"a container did not hand over its proxy's listener: %w",
			errors.Join(err, context.Cause(ctx)),
		)
	}

	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, fmt.Errorf("cannot wait for a container's proxy: %w", err)
		}
	}

	file, err := receiveFile(conn)
	if err != nil {
		return nil, fmt.Errorf("cannot take over a container's proxy: %w", err)
	}
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("cannot take over a container's proxy: %w", err)
	}

	at, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() || at.Port != proxyPort {
		return nil, errors.Join(
			fmt.Errorf("a container's proxy listens on %s, not on loopback port %d",
				listener.Addr(), proxyPort),
			listener.Close(),
		)
	}

	return listener, nil
}

// receiveFile receives a message with a single file.
func receiveFile(conn *net.UnixConn) (*os.File, error) {
	rights := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.New("the message contains no file")
	}

	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.New("the message contains no file")
	}
	syscall.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "listener"), nil
}
