package dockerapi

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"
)

// asNobody connects as a user who owns nothing. Its thread ends when it returns.
func asNobody(ctx context.Context, _, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	dialled := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setfsuid(65532); err != nil {
			dialled <- result{nil, err}
			return
		}

		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
		dialled <- result{conn, err}
	}()

	r := <-dialled
	return r.conn, r.err
}

func TestASocketOfOthersComesWithAdvice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docker.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	api, err := client.NewClientWithOpts(
		client.WithHost("unix://"+path),
		client.WithAPIVersionNegotiation(),
		client.WithDialContext(
			func(ctx context.Context, network, _ string) (net.Conn, error) {
				return asNobody(ctx, network, path)
			},
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{api: api}
	defer c.Close()

	if _, err := c.Check(
		t.Context(),
	); err == nil ||
		!strings.Contains(err.Error(), "usermod -aG docker") {
		t.Errorf("%v", err)
	}
}
