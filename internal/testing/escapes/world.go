package escapes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/internal/wall/egress"
)

// world is the network beyond a proxy, for the cases of the class egress. It has the names below
// and one server. Any request obtains a secret, except for a request to the allowed host at the
// public address and on the allowed port.
type world struct {
	server *httptest.Server // at the public address, port 80
	inside *httptest.Server // for everything else

	mu       sync.Mutex
	secrets  map[string]string // by the paths that cases request
	resolved int
}

// The addresses in the world.
const (
	publicAddress = "93.184.216.34"
	insideAddress = "10.1.2.3"
)

// names are the hosts of the world, except those with changing addresses.
var names = map[string]string{
	"allowed.example.com": publicAddress, "other.example.com": publicAddress,
	"inside.example.com": insideAddress, "loopback.example.com": "127.0.0.1",
	"mapped.example.com": "::ffff:" + insideAddress, "six.example.com": "fd00::1",
	"translated.example.com": "64:ff9b::a01:203", "metadata.example.com": "169.254.169.254",
	"here.example.com": "0.0.0.0",
}

// listedHosts returns the hosts that a case may reach by name. Most of them have addresses that
// must be unreachable.
func listedHosts() []string {
	list := []string{"rebinding.example.com:80"}
	for name := range names {
		if name != "other.example.com" {
			list = append(list, name+":80")
		}
	}
	return list
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{secrets: map[string]string{}}
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	w.inside = httptest.NewServer(http.HandlerFunc(w.betray))
	t.Cleanup(w.server.Close)
	t.Cleanup(w.inside.Close)
	return w
}

// serve is the handler of the allowed host, which redirects on request.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host == "rebinding.example.com":
		_, _ = io.WriteString(rw, "hello") // until here, the request is harmless
	case r.Host != "allowed.example.com" && r.Host != "allowed.example.com:80":
		w.betray(rw, r)
	case r.URL.Query().Get("to") != "":
		http.Redirect(rw, r, r.URL.Query().Get("to"), http.StatusFound)
	default:
		_, _ = io.WriteString(rw, "hello") // the client may be gone
	}
}

// betray answers with the secret of a case.
func (w *world) betray(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = io.WriteString(rw, w.secrets[r.URL.Path])
}

// hide puts a secret where a case looks for it, and returns its path.
func (w *world) hide(secret, token string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := "/" + token
	w.secrets[path] = secret
	return path
}

// options returns the options of proxies whose network is the world.
func (w *world) options() egress.Options {
	return egress.Options{Resolve: w.resolve, Dial: w.dial}
}

func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	host = strings.TrimSuffix(host, ".")
	address := names[host]
	if host == "rebinding.example.com" { // public at first, then inside
		w.mu.Lock()
		address = []string{publicAddress, insideAddress}[w.resolved%2]
		w.resolved++
		w.mu.Unlock()
	}
	if address == "" {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr(address)}, nil
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	server := w.inside
	if address == publicAddress+":80" {
		server = w.server
	}
	return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
}

// serveNaively runs a proxy that connects clients to any target, which is the control of the class.
// It returns the environment variable that names the proxy.
func (w *world) serveNaively(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go w.forwardNaively(t.Context(), near)
		}
	}()
	return "http_proxy=http://" + l.Addr().String()
}

// forwardNaively connects a client to the target in its first line.
func (w *world) forwardNaively(ctx context.Context, near net.Conn) {
	defer near.Close()
	ahead := bufio.NewReader(near)
	line, err := ahead.ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 3 {
		return
	}

	target := words[1]
	if words[0] != http.MethodConnect {
		address, err := url.Parse(target)
		if err != nil {
			return
		}
		target = address.Host
		line = fmt.Sprintf("%s %s %s\r\n", words[0], address.RequestURI(), words[2])
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		host, port = strings.Trim(target, "[]"), "80"
	}
	if addresses, err := w.resolve(ctx, strings.ToLower(host)); err == nil {
		host = addresses[0].Unmap().String()
	}

	far, err := w.dial(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return
	}
	defer far.Close()
	if words[0] == http.MethodConnect {
		for line != "\r\n" && err == nil {
			line, err = ahead.ReadString('\n')
		}
		line = ""
		_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n") // then the copying fails as well
	}
	go func() {
		_, _ = io.Copy(far, io.MultiReader(strings.NewReader(line), ahead)) // until either ends
	}()
	_, _ = io.Copy(near, far)
}
