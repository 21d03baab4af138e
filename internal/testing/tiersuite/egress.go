package tiersuite

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/tiers"
)

// Reaching is a tier with proxies that a test can redirect.
type Reaching interface {
	tiers.Tier
	Reach(o egress.Options)
}

// Egress tests a tier with FeatureSockets: listed hosts are reachable, and nothing else is.
func Egress(t *testing.T, tier Reaching) {
	s := newSuite(tier, Options{})
	s.requireUsable(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s says hello to %s", r.Host, r.URL.Path)
	}))

	t.Cleanup(server.Close)
	known := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s knows %s at %s", r.Host, r.Header.Get("Authorization"), r.URL.Path)
	}))
	t.Cleanup(known.Close)
	world := makeWorld(server.Listener.Addr().String(), known.Listener.Addr().String())
	world.Inject = map[string]http.Header{"allowed.example.com:443": {"Authorization": {"secret"}}}
	world.Roots = x509.NewCertPool()
	world.Roots.AddCert(known.Certificate())
	tier.Reach(world)
	t.Run("Listed", s.testListed)
	t.Run("Credentials", s.testCredentials)
	t.Run("Restored", s.testEgressRestored)
	t.Run("None", s.testNoEgress)
	t.Run("BadHosts", s.testBadHosts)
}

// makeWorld returns options with a small network. allowed.example.com and other.example.com have
// one public address, which leads to server, or to known for TLS. inside.example.com has a private
// address.
func makeWorld(server, known string) egress.Options {
	return egress.Options{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			switch strings.TrimSuffix(host, ".") {
			case "allowed.example.com", "other.example.com":
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			case "inside.example.com":
				return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
			}
			return nil, errors.New("no such host")
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			actual := map[string]string{"93.184.216.34:80": server, "93.184.216.34:443": known}[address]
			if actual == "" {
				return nil, fmt.Errorf("nothing listens on %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, actual)
		},
	}
}

const fetch = `import urllib.request, urllib.error
def fetch(url):
    try:
        return urllib.request.urlopen(url, timeout=20).read().decode()
    except urllib.error.HTTPError as e:
        return f"{e.code} {e.read().decode().strip()}"
    except OSError as e:
        return f"{type(e).__name__}: {e}"
`

func (s *suite) testListed(t *testing.T) {
	b := s.open(t, tiers.Config{Hosts: []string{"allowed.example.com:80", "inside.example.com:80"}})
	r := b.run(t, fetch+"print(fetch('http://allowed.example.com/a'))")
	if r.Stdout != "allowed.example.com says hello to /a\n" || r.Denied != nil {
		t.Errorf("%q %q %+v %+v", r.Stdout, r.Stderr, r.Exception, r.Denied)
	}
	r = b.run(t, `print(fetch('http://other.example.com/b'))
print(fetch('http://inside.example.com/'))
print(fetch('https://other.example.com/'))`)

	for _, want := range []string{
		"403 rlm: other.example.com:80 is refused: the allowed hosts are allowed.example.com:80",
		"10.1.2.3 is not public", "Forbidden by rlm",
	} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("the model does not read %q in %q", want, r.Stdout)
		}
	}

	if len(r.Denied) != 3 || r.Denied[0].Target != "other.example.com:80" {
		t.Errorf("%+v", r.Denied)
	}
	// Connections that bypass the proxy fail.
	r = b.run(t, `import socket
try:
    socket.create_connection(('93.184.216.34', 80), 3)
except OSError as e:
    print(type(e).__name__)
`+
		`try:
    socket.getaddrinfo('allowed.example.com', 80)
except OSError as e:
    print(type(e).__name__)`)

	// There is no rule for the port, or no route.
	if r.Stdout != "PermissionError\ngaierror\n" && r.Stdout != "OSError\ngaierror\n" {
		t.Errorf("%q %+v", r.Stdout, r.Exception)
	}
}

// testCredentials checks that a snippet makes requests with http, and never receives the header.
func (s *suite) testCredentials(t *testing.T) {
	b := s.open(t, tiers.Config{Hosts: []string{"allowed.example.com:443"}})
	r := b.run(t, fetch+"print(fetch('http://allowed.example.com/a'))\nprint(fetch('https://allowed.example.com/a'))")
	if !strings.HasPrefix(r.Stdout, "allowed.example.com knows ****** at /a\n") ||
		!strings.Contains(r.Stdout, "ask for its http:// addresses") {
		t.Errorf("%q %q %+v", r.Stdout, r.Stderr, r.Exception)
	}
}

// testEgressRestored checks that the session's next process also has network access.
func (s *suite) testEgressRestored(t *testing.T) {
	b := s.open(t, tiers.Config{Hosts: []string{"allowed.example.com:80"}})
	b.run(t, fetch+"x = fetch('http://allowed.example.com/1')")
	if r := b.run(t, "import os\nos.kill(-1, 9)\nos.abort()"); r.Status != tiers.StatusCrashed {
		t.Fatalf("%s %+v", r.Status, r.Exception)
	}
	r := b.run(t, fetch+"print(fetch('http://allowed.example.com/2'))")
	if r.Stdout != "allowed.example.com says hello to /2\n" {
		t.Errorf("%q %+v", r.Stdout, r.Exception)
	}
}

// testNoEgress checks that sockets are unavailable without a list of hosts.
func (s *suite) testNoEgress(t *testing.T) {
	b := s.open(t, tiers.Config{})
	r := b.run(t, "import socket\ntry:\n    socket.socket()\nexcept PermissionError:\n    print('no')")
	if r.Stdout != "no\n" {
		t.Errorf("%q %+v", r.Stdout, r.Exception)
	}
}

// testBadHosts checks that the error for a refused host names the host.
func (s *suite) testBadHosts(t *testing.T) {
	for _, host := range []string{"example.com", "127.0.0.1:80", "*.example.com:443", "localhost:80"} {
		if b, err := s.tier.Open(t.Context(), tiers.Config{Hosts: []string{host}}); err == nil ||
			!strings.Contains(err.Error(), host) {
			t.Errorf("%s: %v", host, err)
			if b != nil {
				_ = b.Close()
			}
		}
	}
}
