package docker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

// socket returns the socket on which the real daemon listens.
func socket() string {
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return strings.TrimPrefix(host, "unix://")
	}
	return "/var/run/docker.sock"
}

// gate is a proxy between a tier and the real daemon. It can hang or disappear, as a daemon can.
type gate struct {
	path string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]struct{}
	frozen   chan struct{} // closed while bytes pass
	serving  sync.WaitGroup
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{
		path:   filepath.Join(t.TempDir(), "docker.sock"),
		conns:  map[net.Conn]struct{}{},
		frozen: make(chan struct{}),
	}
	close(g.frozen)
	g.listen(t)
	t.Cleanup(g.cut)
	return g
}

func (g *gate) listen(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", g.path)
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	g.listener = l
	g.mu.Unlock()
	g.serving.Add(1)
	go func() {
		defer g.serving.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			g.serving.Add(1)
			go g.serve(conn)
		}
	}()
}

func (g *gate) serve(conn net.Conn) {
	defer g.serving.Done()
	daemon, err := net.Dial("unix", socket())
	if err != nil {
		_ = conn.Close()
		return
	}
	g.mu.Lock()
	g.conns[conn], g.conns[daemon] = struct{}{}, struct{}{}
	g.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{conn, daemon}, {daemon, conn}} {
		both.Add(1)
		go func() {
			defer both.Done()
			g.copy(pair[0], pair[1])
		}()
	}
	both.Wait()
	_, _ = conn.Close(), daemon.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
	delete(g.conns, daemon)
}

func (g *gate) copy(to, from net.Conn) {
	part := make([]byte, 64<<10)
	for {
		n, err := from.Read(part)
		g.mu.Lock()
		passes := g.frozen
		g.mu.Unlock()
		<-passes
		if _, failed := to.Write(part[:n]); failed != nil || err != nil {
			if half, ok := to.(*net.UnixConn); ok {
				_ = half.CloseWrite()
			}
			return
		}
	}
}

// freeze makes the daemon hang, until thaw.
func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.frozen = make(chan struct{})
}

func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.frozen)
}

// cut makes the daemon disappear: connections break, and no new ones are accepted.
func (g *gate) cut() {
	g.mu.Lock()
	select {
	case <-g.frozen:
	default:
		close(g.frozen)
	}
	_ = g.listener.Close()
	for conn := range g.conns {
		_ = conn.Close()
	}
	g.mu.Unlock()
	g.serving.Wait()
}

// behind returns a tier whose daemon is behind the gate.
func behind(t *testing.T, g *gate) *docker.Tier {
	t.Helper()
	usual(t, docker.Options{Warm: -1}) // it works here
	tier := docker.New(docker.Options{Host: "unix://" + g.path, Warm: -1}).(*docker.Tier)
	t.Cleanup(func() { _ = tier.Close() }) // the test checks what remains
	return tier
}

// daemonCall sends a request to the real daemon, bypassing the tier, as an administrator would.
func daemonCall(t *testing.T, method, path string, into any) {
	t.Helper()
	if err := tryDaemonCall(t, method, path, into); err != nil {
		t.Fatal(err)
	}
}

// tryDaemonCall is daemonCall for a request that the daemon may reject.
func tryDaemonCall(t *testing.T, method, path string, into any) error {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket())
		},
	}
	request, err := http.NewRequestWithContext(
		context.WithoutCancel(t.Context()), method, "http://docker/v1.41"+path, http.NoBody,
	)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		return errors.Join(fmt.Errorf("%s %s: %s %s", method, path, response.Status, body), err)
	}
	if into == nil {
		return nil
	}

	return json.Unmarshal(body, into)
}

// containers returns the containers of a process of this machine.
func containers(t *testing.T, pid int) []string {
	t.Helper()
	var list []struct {
		ID     string `json:"Id"`
		Labels map[string]string
	}
	filter, err := json.Marshal(map[string][]string{"label": {"rlm.tier=docker"}})
	if err != nil {
		t.Fatal(err)
	}
	daemonCall(
		t, http.MethodGet, "/containers/json?all=1&filters="+url.QueryEscape(string(filter)), &list,
	)
	var ids []string
	for _, c := range list {
		if strings.Contains(c.Labels["rlm.owner"], fmt.Sprintf("/%d/", pid)) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// gone fails the test if a container of this process still exists.
func gone(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range containers(t, os.Getpid()) {
		if slices.Contains(ids, id) {
			t.Errorf("the container %s is left", id)
		}
	}
}

// noting records the containers that a sandbox has had.
type noting struct {
	box tiers.Sandbox
	ids []string
}

func (n *noting) note() {
	if id := docker.ContainerOf(n.box); id != "" && !slices.Contains(n.ids, id) {
		n.ids = append(n.ids, id)
	}
}
