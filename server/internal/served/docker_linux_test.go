//go:build amd64 || arm64

package served

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/standard"
)

// daemonGate is a proxy between the server and Docker's daemon that can be closed.
type daemonGate struct {
	path string

	mu   sync.Mutex
	isUp bool
	open []net.Conn
}

// newDaemonGate starts an open gate.
func newDaemonGate(t *testing.T) *daemonGate {
	t.Helper()
	daemon := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if daemon == "" {
		daemon = "/var/run/docker.sock"
	}
	g := &daemonGate{path: filepath.Join(t.TempDir(), "docker.sock"), isUp: true}
	l, err := net.Listen("unix", g.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(); g.set(false) })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			g.pass(near, daemon)
		}
	}()
	return g
}

func (g *daemonGate) pass(near net.Conn, daemon string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	far, err := net.Dial("unix", daemon)
	if err != nil || !g.isUp {
		_ = near.Close()
		return
	}
	g.open = append(g.open, near, far)
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1]) // until either ends
			if half, ok := pair[0].(*net.UnixConn); ok {
				_ = half.CloseWrite() // may be gone
			}
		}()
	}
}

// set opens or closes the gate, and breaks all open connections.
func (g *daemonGate) set(isUp bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isUp = isUp
	if !isUp {
		for _, conn := range g.open {
			_ = conn.Close()
		}
		g.open = nil
	}
}

// TestADaemonThatIsGoneEndsNoOtherSession makes Docker's daemon unreachable during a session. It
// checks that the session gets an error with a reason, and that others continue. When the daemon is
// back, the session must continue, too, and report its loss.
func TestADaemonThatIsGoneEndsNoOtherSession(t *testing.T) {
	skip.Short(t, "it starts containers")
	gate := newDaemonGate(t)
	s := start(t, rlm.Options{Tiers: standard.Tiers(standard.Options{DockerHost: "unix://" + gate.path})})
	for _, tier := range s.engine.Tiers() {
		if tier.Info().Name == rlm.TierDocker {
			skip.WithoutTier(t, rlm.TierDocker, tier.Probe(t.Context()))
		}
	}
	key := s.newKey("alice")
	box, other := s.open(key, rlm.TierDocker), s.open(key, rlm.TierWasm)
	box.exec("n = 41; n", 200, `"echo":"41"`)
	other.exec("n = 7; n", 200, `"echo":"7"`)

	gate.set(false)
	said := box.exec("n += 1; n", 502, "tier docker broke")
	other.exec("n", 200, `"echo":"7"`)

	gate.set(true)
	got := box.exec("globals().get('n')", 200, `"tier":"docker"`)
	if !strings.Contains(got, `"echo":"41"`) && !strings.Contains(said+got, "lost") {
		t.Errorf("the session says nothing of its loss: %s %s", said, got)
	}
	box.exec("6 * 7", 200, `"echo":"42"`)
}

// open opens a session in a tier.
func (s *served) open(key, tier string) *apiBox {
	s.t.Helper()
	box := &apiBox{served: s, key: key}
	if err := box.open(s.t.Context(), object{"policy": object{"tier": tier}}); err != nil {
		s.t.Fatal(err)
	}
	return box
}

// exec runs a snippet and returns the answer, which must have the status and contain text.
func (b *apiBox) exec(source string, status int, text string) string {
	b.t.Helper()
	got, err := b.request(b.t.Context(), http.MethodPost, b.path+"/exec", object{"source": source})
	if err != nil || got.status != status || !strings.Contains(got.body, text) {
		b.t.Errorf("%s gives %d %s, %v, want %d with %s", source, got.status, got.body, err, status, text)
	}
	return got.body
}
