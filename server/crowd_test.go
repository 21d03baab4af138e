package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/server/internal/access"
)

// listen serves on a bounded listener until the test ends, and returns its address.
func (s *tested) listen(secure *tls.Config) string {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(ctx, listener, secure, time.Second) }()
	s.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	return listener.Addr().String()
}

// slow contains the first bytes that stalled clients send: none, or a part of a TLS handshake, of a
// head or of a body.
var slow = []string{
	"", "\x16\x03\x01\x02\x00\x01", "GET /v1/models HTTP/1.1\r\nHost: local",
	"POST /v1/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
}

// TestSlowConnectionsMakeRoom checks that connections without a request do not keep others out,
// whatever their number, and that connections with a request stay.
func TestSlowConnectionsMakeRoom(t *testing.T) {
	for name, isSecure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) { floodSlowly(t, isSecure) })
	}
}

// floodSlowly opens many slow connections around a request, and sends other requests.
func floodSlowly(t *testing.T, isSecure bool) {
	t.Helper()
	model := newHeld(counting(t))
	s := start(t, t.TempDir(), model, func(o *Options) { o.Connections = 16 })
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	scheme, client, secure := "http://", &http.Client{Transport: &http.Transport{}}, (*tls.Config)(nil)
	if isSecure {
		scheme, client, secure = "https://", web.Client(), web.TLS.Clone()
		secure.NextProtos = nil
	}
	defer client.CloseIdleConnections()
	address := s.listen(secure)

	answers := make(chan string, 1)
	go func() { answers <- post(t, client, scheme+address+"/v1/chat/completions") }()
	<-model.asked // the connection of this request is the oldest one
	for i := range 200 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, slow[i%len(slow)]); err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 {
			response, err := client.Get(scheme + address + "/healthz")
			if err != nil {
				t.Fatalf("behind %d slow clients: %v", i, err)
			}
			_ = response.Body.Close()
		}
	}
	close(model.release)
	if answer := <-answers; !strings.Contains(answer, "Hello.") {
		t.Errorf("the request of the beginning gets %q", answer)
	}
}

// post sends a request that makes the model wait, and returns the answer.
func post(t *testing.T, client *http.Client, address string) string {
	t.Helper()
	body := `{"model":"rlm/default","messages":[{"role":"user","content":"wait"}]}`
	response, err := client.Post(address, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestRequestsUnderWayAreBounded checks that a tenant may have half of the active requests, and
// immediately gets an error for any more.
func TestRequestsUnderWayAreBounded(t *testing.T) {
	model := newHeld(counting(t))
	s := start(t, t.TempDir(), model, func(o *Options) {
		o.Open, o.Connections, o.AtOnce, o.Queue = false, 16, 1, 9 // 12 requests, of one tenant 6
	})
	greedy, other := s.key(access.Key{Name: "greedy"}), s.key(access.Key{Name: "other"})
	answers := make(chan answer, 6)
	for range 6 {
		go func() {
			for { // a question below may have taken its place
				if got := s.do("POST", "/v1/chat/completions", greedy, chat("wait")); got.status != 503 {
					answers <- got
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	<-model.asked
	for s.do("GET", "/v1/models", greedy, nil).status != 503 {
		time.Sleep(time.Millisecond) // until all requests have arrived
	}
	got := s.do("GET", "/v1/models", greedy, nil)
	s.want(got, 503, "6 of them of this tenant")
	if got.header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	s.want(s.do("GET", "/v1/models", other, nil), 200, "rlm/default")
	close(model.release)
	for range 6 {
		s.want(<-answers, 200, "Hello.")
	}
	s.want(s.do("GET", "/v1/models", greedy, nil), 200, "rlm/default")
}
