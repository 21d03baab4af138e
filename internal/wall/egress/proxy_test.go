package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/wall/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a network of names, which are all served on loopback.
type world struct {
	names map[string][]string // to addresses
	ports map[string]string   // "address:port" to the address to dial
	dials atomic.Int64
}

func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	texts, ok := w.names[strings.TrimSuffix(host, ".")]
	if !ok {
		return nil, errors.New("no such host")
	}

	var list []netip.Addr
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list, nil
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.dials.Add(1)
	actual, ok := w.ports[address]
	if !ok {
		return nil, fmt.Errorf("nothing listens on %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, actual)
}

// start serves a proxy on a Unix socket and returns a client that can reach only the proxy.
func start(
	t *testing.T, w *world, o egress.Options, hosts ...string,
) (*egress.Proxy, *http.Client, string) {
	t.Helper()
	o.Resolve, o.Dial = w.resolve, w.dial
	p, err := egress.New(hosts, o)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p.Serve(l)
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		//nolint:gosec // the test's own server
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})

	return p, client, socket
}

func server(t *testing.T, secure bool) (address string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s %s %q",
			r.Method, r.Host, r.URL.Path, body, r.Header["X-Forwarded-For"])
	}))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}

	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func get(t *testing.T, c *http.Client, address string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()

	body, err := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", r.Status, body)
	}
	return string(body), err
}

func TestListedHostsAreReached(t *testing.T) {
	w := &world{
		names: map[string][]string{
			"plain.example.com": {"93.184.216.34"},
			"tls.example.com":   {"2606:2800:220:1::1", "93.184.216.35"},
		},
		ports: map[string]string{
			"93.184.216.34:80":  server(t, false),
			"93.184.216.35:443": server(t, true),
		},
	}
	p, client, _ := start(t, w, egress.Options{}, "plain.example.com:80", "TLS.example.com.:443")
	for address, want := range map[string]string{
		"http://plain.example.com/a":  "GET plain.example.com /a  []",
		"http://PLAIN.example.com/b":  "GET PLAIN.example.com /b  []",
		"https://tls.example.com/c":   "GET tls.example.com /c  []",
		"https://tls.example.com./cc": "GET tls.example.com. /cc  []",
	} {
		t.Run(address, func(t *testing.T) {
			if got, err := get(t, client, address); got != want || err != nil {
				t.Errorf("%s: %q %v", address, got, err)
			}
		})
	}

	if d := p.Denials(); len(d) > 0 {
		t.Errorf("refused: %+v", d)
	}
}

func TestUnlistedHostsAreRefused(t *testing.T) {
	w := &world{
		names: map[string][]string{
			"good.example.com":   {"93.184.216.34"},
			"evil.example.com":   {"93.184.216.34"},
			"inside.example.com": {"10.0.0.1"},
			"mixed.example.com":  {"93.184.216.34", "169.254.169.254"},
			"mapped.example.com": {"::ffff:127.0.0.1"},
			"nat64.example.com":  {"64:ff9b::7f00:1"},
			"azure.example.com":  {"168.63.129.16"},
		},
		ports: map[string]string{
			"93.184.216.34:80": server(t, false),
			"10.0.0.1:80":      server(t, false),
		},
	}
	p, client, _ := start(t, w, egress.Options{},
		"good.example.com:80", "inside.example.com:80", "mixed.example.com:80",
		"mapped.example.com:80", "nat64.example.com:80", "azure.example.com:80",
		"nowhere.example.com:80")
	for address, want := range map[string]string{
		"http://evil.example.com/":        "the allowed hosts are good.example.com:80",
		"https://evil.example.com/":       "the allowed hosts are good.example.com:80",
		"http://good.example.com:8080/":   "the allowed hosts are",
		"https://good.example.com/":       "the allowed hosts are",
		"http://inside.example.com/":      "10.0.0.1 is not public",
		"http://mixed.example.com/":       "169.254.169.254 is not public",
		"http://mapped.example.com/":      "127.0.0.1 is not public",
		"http://nat64.example.com/":       "is not public",
		"http://azure.example.com/":       "is not public",
		"http://127.0.0.1/":               "give a host name",
		"http://[::1]/":                   "HOST", // without a port to cut off
		"http://2130706433/":              "give a host name",
		"http://0x7f.1/":                  "give a host name",
		"http://good.example.com.evil.io": "the allowed hosts are",
	} {
		t.Run(address, func(t *testing.T) {
			before := w.dials.Load()
			got, err := get(t, client, address)
			if err == nil {
				t.Errorf("%s was let through: %s", address, got)
				return
			}

			denials := p.Denials()
			if len(denials) != 1 || w.dials.Load() != before {
				t.Errorf("%s: %d denials, %d dials", address, len(denials), w.dials.Load()-before)
				return
			}

			said := denials[0].Target + " " + denials[0].Reason
			ours := strings.Contains(said, want) && strings.Contains(err.Error(), "rlm")
			if want != "HOST" && !ours {
				t.Errorf("%s: %q, the client sees %v", address, said, err)
			}
		})
	}

	_, err := get(t, client, "http://nowhere.example.com/")
	if err == nil || !strings.Contains(err.Error(), "502") || len(p.Denials()) > 0 {
		t.Errorf("a name that does not resolve is the network's failure, not a refusal: %v", err)
	}
}

func TestRawRequestsAreRefused(t *testing.T) {
	w := &world{
		names: map[string][]string{"good.example.com": {"93.184.216.34"}},
		ports: map[string]string{"93.184.216.34:80": server(t, false)},
	}
	_, _, socket := start(t, w, egress.Options{}, "good.example.com:80")
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: good.example.com\r\n\r\n",
		"GET ftp://good.example.com/ HTTP/1.1\r\nHost: good.example.com\r\n\r\n",
		"GET http://u:p@good.example.com/ HTTP/1.1\r\nHost: good.example.com\r\n\r\n",
		"CONNECT good.example.com HTTP/1.1\r\nHost: good.example.com\r\n\r\n",
		"CONNECT good.example.com:080 HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT good.example.com:80\x00.evil HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT g\u00f6od.example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n",
		"\x00\x00\x00\x00\r\n\r\n",
	} {
		t.Run(fmt.Sprintf("%.60s", request), func(t *testing.T) {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, request)
			line, _ := bufio.NewReader(c).ReadString('\n')
			if !strings.HasPrefix(line, "HTTP/1.1 4") {
				t.Errorf("%q: %q", request, line)
			}
			_ = c.Close()
		})
	}

	if n := w.dials.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// TestTheHostHeaderCannotLie checks that the server receives the name that the proxy checked.
func TestTheHostHeaderCannotLie(t *testing.T) {
	w := &world{
		names: map[string][]string{"good.example.com": {"93.184.216.34"}},
		ports: map[string]string{"93.184.216.34:80": server(t, false)},
	}
	_, _, socket := start(t, w, egress.Options{}, "good.example.com:80")
	c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	_, _ = io.WriteString(c, "GET http://good.example.com/x HTTP/1.1\r\n"+
		"Host: tenant.other.example\r\nConnection: close\r\n\r\n")
	answer, _ := io.ReadAll(c)
	if !strings.Contains(string(answer), "GET good.example.com /x") {
		t.Errorf("%s", answer)
	}
}

// TestNoAnswerSwitchesProtocols checks a listed server that switches protocols without a request,
// with and without naming the new protocol.
func TestNoAnswerSwitchesProtocols(t *testing.T) {
	for name, upgrade := range map[string]string{
		"nameless": "", "named": "Connection: Upgrade\r\nUpgrade: raw\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()

				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					t.Error(err)
				}
				switched := "HTTP/1.1 101 Switching Protocols\r\n" + upgrade + "\r\nsecret"
				_, _ = io.WriteString(c, switched)
				_, _ = io.Copy(io.Discard, c) // until the other side closes it
			}()

			t.Cleanup(func() {
				_ = l.Close()
				<-ended
			})
			w := &world{
				names: map[string][]string{"a.example.com": {"93.184.216.34"}},
				ports: map[string]string{"93.184.216.34:80": l.Addr().String()},
			}
			p, _, socket := start(t, w, egress.Options{}, "a.example.com:80")
			c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()

			_, _ = io.WriteString(
				c,
				"GET http://a.example.com/ HTTP/1.1\r\nHost: a.example.com\r\n"+
					"Connection: Upgrade, close\r\nUpgrade: raw\r\n\r\n",
			)
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 403") ||
				strings.Contains(string(answer), "secret") ||
				len(p.Denials()) != 1 {
				t.Errorf("%q %v", answer, err)
			}
		})
	}
}

func TestBytesAreBounded(t *testing.T) {
	big := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 1<<20))
	}))
	t.Cleanup(big.Close)
	w := &world{
		names: map[string][]string{"a.example.com": {"93.184.216.34"}},
		ports: map[string]string{"93.184.216.34:80": big.Listener.Addr().String()},
	}
	p, client, _ := start(t, w, egress.Options{MaxBytes: 100_000}, "a.example.com:80")
	if body, err := get(t, client, "http://a.example.com/"); err == nil {
		t.Errorf("%d bytes came through", len(body))
	}
	if d := p.Denials(); len(d) != 1 || !strings.Contains(d[0].Reason, "100000 bytes") {
		t.Errorf("%+v", d)
	}
}

// TestAFloodOfRefusalsFillsNoLog requests unlisted hosts repeatedly, and checks that the log stays
// bounded.
func TestAFloodOfRefusalsFillsNoLog(t *testing.T) {
	var log bytes.Buffer // written by one connection, one request after another
	p, client, _ := start(
		t, &world{}, egress.Options{Log: slog.New(slog.NewJSONHandler(&log, nil))},
		"a.example.com:80",
	)
	const asked = 500
	for range asked {
		if _, err := get(t, client, "http://evil.example.com/"); err == nil {
			t.Fatal("it was let through")
		}
	}

	lines := bytes.Count(log.Bytes(), []byte("\n"))
	if lines == 0 || lines >= asked || lines != len(p.Denials()) {
		t.Errorf("%d lines in the log", lines)
	}
}

// TestCloseEndsTunnels closes the proxy during a tunnel. goleak checks that no goroutine remains.
func TestCloseEndsTunnels(t *testing.T) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	w := &world{
		names: map[string][]string{"a.example.com": {"93.184.216.34"}},
		ports: map[string]string{"93.184.216.34:443": silent.Addr().String()},
	}
	p, _, socket := start(t, w, egress.Options{}, "a.example.com:443")
	c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	_, _ = io.WriteString(c,
		"CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\n\r\n")
	in := bufio.NewReader(c)
	if line, _ := in.ReadString('\n'); !strings.Contains(line, "200") {
		t.Fatalf("%q", line)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadAll(in); errors.Is(err, context.DeadlineExceeded) {
		t.Error("the tunnel lives on")
	}
}

// TestConnectionsAreBounded checks that connections beyond the bound wait until others end.
func TestConnectionsAreBounded(t *testing.T) {
	w := &world{
		names: map[string][]string{"a.example.com": {"93.184.216.34"}},
		ports: map[string]string{"93.184.216.34:80": server(t, false)},
	}
	_, client, socket := start(t, w, egress.Options{}, "a.example.com:80")
	var open []net.Conn
	for range 64 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}

	done := make(chan error, 1)
	go func() {
		_, err := get(t, client, "http://a.example.com/")
		done <- err
	}()
	for _, c := range open {
		_ = c.Close()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func BenchmarkTunnel(b *testing.B) {
	w := &world{
		names: map[string][]string{"a.example.com": {"93.184.216.34"}},
		ports: map[string]string{},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	}))
	defer s.Close()

	w.ports["93.184.216.34:80"] = s.Listener.Addr().String()
	p, err := egress.New(
		[]string{"a.example.com:80"},
		egress.Options{Resolve: w.resolve, Dial: w.dial},
	)
	if err != nil {
		b.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "unix", filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	p.Serve(l)
	defer p.Close()

	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", l.Addr().String())
		},
	}}
	defer client.CloseIdleConnections()

	for b.Loop() {
		r, err := client.Get("http://a.example.com/")
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
}
