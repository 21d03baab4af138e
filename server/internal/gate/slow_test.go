package gate

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSlowClientsAreCutOff checks that a client that stops within a body loses its connection,
// whether the server reads the body, ignores it, or refuses the request.
func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "the body is incomplete", http.StatusBadRequest)
		}
	})
	mux.HandleFunc("/leave", func(http.ResponseWriter, *http.Request) {})
	web := httptest.NewServer(New(Options{
		MaxBody: 1 << 20, Patience: 50 * time.Millisecond, Public: []string{"/read", "/leave"},
		Hosts: []string{"known"}, Log: slog.New(slog.DiscardHandler),
		Fail: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusMisdirectedRequest)
		},
	}, mux))
	defer web.Close()

	for _, c := range []struct{ path, host, want string }{
		{"/read", "known", "HTTP/1.1 400"},
		{"/leave", "known", ""}, // the answer may or may not arrive
		{"/read", "unknown", ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			conn, err := net.Dial("tcp", web.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n\r\n{", c.path, c.host)
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // so that a failure is reported
			answer, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(answer), c.want) {
				t.Errorf("%+v: %q, %v", c, answer, err)
			}
			_ = conn.Close()
		})
	}
}

// TestQuietClientsAreKept checks that a client that sent its whole body may wait for the answer,
// because its connection has no read deadline any more.
func TestQuietClientsAreKept(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var deadlines deadlines
	web := httptest.NewUnstartedServer(New(Options{
		MaxBody: 1 << 20, Public: []string{"/"}, Log: slog.New(slog.DiscardHandler),
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		_, _ = r.Body.Read(make([]byte, 1)) // the body has ended
		fmt.Fprint(w, deadlines.last())
	})))
	_ = web.Listener.Close() // no request has used it
	web.Listener = recordingListener{listener, &deadlines}
	web.Start()
	defer web.Close()

	for _, sent := range []string{"x", ""} {
		t.Run(sent, func(t *testing.T) {
			response, err := http.Post(web.URL, "text/plain", strings.NewReader(sent))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			if string(text) != fmt.Sprint(time.Time{}) {
				t.Errorf("sent %q: the deadline is %q, %v", sent, text, err)
			}
			_ = response.Body.Close()
		})
	}
	if !deadlines.wasSet() {
		t.Error("a body may take any time to arrive")
	}
}

// deadlines records the read deadlines of all connections of a listener.
type deadlines struct {
	mu  sync.Mutex
	all []time.Time
}

func (d *deadlines) add(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, at)
}

func (d *deadlines) last() (at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.all); n > 0 {
		at = d.all[n-1]
	}
	return at
}

func (d *deadlines) wasSet() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.all, func(at time.Time) bool { return at.After(time.Now()) })
}

type recordingListener struct {
	net.Listener
	deadlines *deadlines
}

// Accept implements [net.Listener].
func (l recordingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &recordingConn{conn, l.deadlines}, err
}

type recordingConn struct {
	net.Conn
	deadlines *deadlines
}

// SetReadDeadline implements [net.Conn].
func (c *recordingConn) SetReadDeadline(at time.Time) error {
	c.deadlines.add(at)
	return c.Conn.SetReadDeadline(at)
}
