package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// memory returns one of the memory figures in the status of the server's process, in bytes.
func (s *serving) memory(name string) int64 {
	s.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.Fatal(err)
	}
	_, rest, _ := bytes.Cut(data, []byte("\n"+name+":"))
	fields := strings.Fields(string(rest))
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		s.Fatal(err)
	}
	return kib << 10
}

// files returns the number of files that the server's process has open.
func (s *serving) files() int {
	s.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		s.Fatal(err)
	}
	return len(list)
}

// mayOpen ensures that this process may open n files.
func mayOpen(t *testing.T, n uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur >= n {
		return
	}
	limit = unix.Rlimit{Cur: n, Max: max(limit.Max, n)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Skipf("this user may not have %d files open: %v", n, err)
	}
}

// slowClients are the bytes that slow clients send before they wait: no bytes, or a part of a TLS
// handshake, a head, a large head, a body that no handler reads, or a tenant's body.
var slowClients = []string{
	"", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "POST /v1/sessions HTTP/1.1\r\nHost: local",
	"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + strings.Repeat("a", 30_000),
	"POST /v1/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat(" ", 10_000),
	"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n" +
		"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat(" ", 10_000),
}

// TestTenThousandSlowClientsKeepNobodyOut checks that the server's memory and open files stay
// bounded, and that other clients get answers, while 10,000 clients hold connections, without and
// with TLS. It measures the memory of the process, not only the heap.
func TestTenThousandSlowClientsKeepNobodyOut(t *testing.T) {
	needSignals(t)
	skip.Short(t, "it holds thousands of connections")
	skip.UnderRace(t) // the detector's memory would dominate
	const most = 1_000
	mayOpen(t, 11_000)
	for clients, isSecure := range map[int]bool{10_000: false, 2_000: true} { // a handshake is expensive
		t.Run(fmt.Sprint(clients), func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, dir, "s.yaml", servedScript)
			greedy, other := newKey(t, dir, "greedy"), newKey(t, dir, "other")
			args := []string{
				"--model", "scripted/s.yaml", "--insecure-no-workers", "--require-key",
				"--max-connections", strconv.Itoa(most),
			}
			client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
			if isSecure {
				client = secureClient(t, dir)
				args = append(args, "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--host", "127.0.0.1")
			}
			s := startServing(t, dir, args...)
			s.key = other
			s.flood(client, greedy, clients, most, isSecure)
			client.CloseIdleConnections()
			interrupt(t, s.cmd)
			if code := exitCodeOf(t, s.cmd); code != 0 {
				t.Errorf("the server ends with code %d", code)
			}
		})
	}
}

// flood opens the connections of slow clients while another client sends requests.
func (s *serving) flood(client *http.Client, greedy string, clients, most int, isSecure bool) {
	s.Helper()
	begun, files := s.memory("VmRSS"), s.files()
	_, address, _ := strings.Cut(s.address, "://")
	var all []net.Conn
	defer func() {
		for _, conn := range all {
			_ = conn.Close()
		}
	}()
	for i := range clients {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			s.Fatalf("connection %d: %v", i, err)
		}
		all = append(all, conn)
		kind := i % len(slowClients)
		if isSecure && kind > 1 {
			conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		}
		sent := strings.Replace(slowClients[kind], "KEY", greedy, 1)
		_, _ = io.WriteString(conn, sent) // the server may have closed it
		if i%500 != 499 {
			continue
		}
		r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.address+"/v1/models", nil)
		if err != nil {
			s.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.key)
		client.CloseIdleConnections() // each request uses a new one
		response, err := client.Do(r)
		if err != nil {
			s.Fatalf("behind %d slow clients: %v", i, err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			s.Fatalf("behind %d slow clients: %s %s", i, response.Status, text)
		}
		if open := s.files() - files; open > most+50 {
			s.Fatalf("behind %d slow clients, the server has %d more files open", i, open)
		}
	}
	grown := s.memory("VmHWM") - begun
	s.Logf("%d connections: %d MiB more, %d files more", clients, grown>>20, s.files()-files)
	if grown > 200<<20 {
		s.Errorf("the memory of the server grew by %d MiB", grown>>20)
	}
}

// secureClient writes a certificate into a folder, and returns a client that trusts it.
func secureClient(t *testing.T, dir string) *http.Client {
	t.Helper()
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	cert, key := pemOf(t, &web.TLS.Certificates[0])
	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client := web.Client()
	client.Timeout = patience
	return client
}

// pemOf returns a certificate and its key in PEM.
func pemOf(t *testing.T, c *tls.Certificate) (cert, key []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TestBigMessagesOfManySocketsAreBounded sends the beginning of a nearly maximal message on each
// connection. It checks that all messages together take no more memory than request bodies may.
func TestBigMessagesOfManySocketsAreBounded(t *testing.T) {
	needSignals(t)
	skip.UnderRace(t) // the detector's memory would dominate
	const clients, size, most = 32, 15_000_000, 16 * 16_000_000 / 2
	dir := t.TempDir()
	writeFile(t, dir, "s.yaml", servedScript)
	s := startServing(t, dir, "--model", "scripted/s.yaml", "--insecure-no-workers", "--max-body", "16MB")
	begun := s.memory("VmRSS")
	text := bytes.Repeat([]byte{' '}, size)
	refused := make(chan error, clients)
	for range clients {
		//nolint:bodyclose // the package has read it
		conn, _, err := websocket.Dial(t.Context(), s.address+"/v1/sessions/connect", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		go func() {
			if w, err := conn.Writer(t.Context(), websocket.MessageText); err == nil {
				_, _ = w.Write(text) // the server may close the connection
			}
			_, _, err := conn.Read(t.Context())
			refused <- err
		}()
	}
	for range clients - most/size { // the connections that do not fit
		if err := <-refused; websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
			t.Errorf("a message that does not fit ends with %v", err)
		}
	}
	grown := s.memory("VmHWM") - begun
	t.Logf("%d MiB more", grown>>20)
	if grown > 4*most { // growing a message copies it, and the collector has not freed the old copies
		t.Errorf("the memory of the server grew by %d MiB", grown>>20)
	}
	var list struct{ Data []struct{ ID string } }
	s.ask("GET", "/v1/models", "", &list)
}
