package egress_test

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rlmhq/rlm/internal/wall/egress"
)

// token is a credential, which the server echoes.
const token = "s3cret-token"

// startWithCredentials serves a proxy that adds a header to requests to api.example.com:443. The
// server there echoes what it receives.
func startWithCredentials(t *testing.T) (*egress.Proxy, *http.Client, string) {
	t.Helper()
	echo := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Echo", r.Header.Get("Authorization"))
		w.Header().Set("Trailer", "Late")
		said := fmt.Sprintf("%s %s %s %q %s", r.Method, r.Host, r.URL.Path, r.Header["Authorization"], body)
		for _, b := range []byte(said) { // a credential may arrive in pieces
			_, _ = w.Write([]byte{b})
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Late", r.Header.Get("Authorization"))
	}))
	t.Cleanup(echo.Close)

	roots := x509.NewCertPool()
	roots.AddCert(echo.Certificate())
	w := &world{
		names: map[string][]string{
			"api.example.com": {"93.184.216.34"}, "wrong.example": {"93.184.216.34"},
			"b.example.com": {"93.184.216.35"},
		},
		ports: map[string]string{
			"93.184.216.34:443": echo.Listener.Addr().String(), "93.184.216.35:80": server(t, false),
		},
	}
	headers := http.Header{"Authorization": {"Bearer " + token}}
	return start(t, w, egress.Options{Roots: roots, Inject: map[string]http.Header{
		"API.example.com:443": headers, "wrong.example:443": headers, "b.example.com:443": headers,
	}}, "api.example.com:443", "b.example.com:80", "wrong.example:443")
}

// TestCredentialsAreAdded checks that the server receives the guest's plain HTTP request with the
// credential over TLS, and that the guest gets the echo without the credential.
func TestCredentialsAreAdded(t *testing.T) {
	p, client, _ := startWithCredentials(t)
	hidden := strings.Repeat("*", len("Bearer "+token))
	for _, address := range []string{
		"http://api.example.com/a", "http://API.example.com./a", "http://api.example.com:80/a",
		"http://api.example.com:443/a",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("given"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "mine")
		r, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		want := fmt.Sprintf("POST api.example.com /a [%q] given", hidden)
		if string(body) != want || err != nil || r.Header.Get("Echo") != hidden || r.Trailer.Get("Late") != hidden {
			t.Errorf("%s: %s %q %v %v %v", address, r.Status, body, r.Header, r.Trailer, err)
		}
	}

	// Without credentials for this port, the request is plain HTTP.
	if got, err := get(t, client, "http://b.example.com/b"); got != "GET b.example.com /b  []" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if d := p.Denials(); len(d) > 0 {
		t.Errorf("refused: %+v", d)
	}
}

// TestCredentialsStayInTheProxy checks that credentials are not sent to a server that cannot prove
// its name, or to a guest.
func TestCredentialsStayInTheProxy(t *testing.T) {
	_, client, socket := startWithCredentials(t)
	if got, err := get(t, client, "http://wrong.example/"); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("a server with another name: %q, %v", got, err)
	}
	for _, request := range []string{
		"TRACE http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
		"GET https://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
		"CONNECT api.example.com.:443 HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(fmt.Sprintf("%.60s", request), func(t *testing.T) {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, request)
			line, _ := bufio.NewReader(c).ReadString('\n')
			if !strings.HasPrefix(line, "HTTP/1.1 403") ||
				strings.HasPrefix(request, "CONNECT") && !strings.Contains(line, "ask for its http:// addresses") {
				t.Errorf("%q: %q", request, line)
			}
			_ = c.Close()
		})
	}

	// Headers that belong to one connection are not passed on. The credentials must not be treated
	// as such headers.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.example.com/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Connection", "Authorization")
	r, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.Header.Get("Echo") != strings.Repeat("*", len("Bearer "+token)) {
		t.Errorf("the server got %q", r.Header.Get("Echo"))
	}
}

// TestAnswersMayBeginEarly checks a server that answers while the guest is still sending. The
// server must receive the whole request.
func TestAnswersMayBeginEarly(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		controller := http.NewResponseController(w)
		_ = controller.EnableFullDuplex()
		_ = controller.Flush()
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(echo.Close)
	_, client, _ := start(t, &world{
		names: map[string][]string{"b.example.com": {"93.184.216.35"}},
		ports: map[string]string{"93.184.216.35:80": echo.Listener.Addr().String()},
	}, egress.Options{}, "b.example.com:80")

	body, guest := io.Pipe()
	defer guest.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://b.example.com/", body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()

	go func() {
		_, _ = io.WriteString(guest, "given late")
		_ = guest.Close()
	}()
	if got, err := io.ReadAll(r.Body); string(got) != "given late" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestABodyThatBreaksOff checks that no part of a credential is passed on.
func TestABodyThatBreaksOff(t *testing.T) {
	body := io.MultiReader(strings.NewReader("x Bearer s3cret-tok"), iotest.ErrReader(io.ErrUnexpectedEOF))
	got, err := io.ReadAll(egress.Hiding(io.NopCloser(body), "Bearer "+token))
	if string(got) != "x " || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzHiding checks that a body keeps its length and loses the credentials, whatever the sizes of
// its pieces.
func FuzzHiding(f *testing.F) {
	f.Add([]byte("x Bearer s3cret-token y s3cret-tokens3cret-token s3cret-"), "Bearer s3cret-token")
	f.Add([]byte("abababac"), "abac")
	f.Add([]byte("aaaaaaaaa"), "aaaa")
	f.Fuzz(func(t *testing.T, body []byte, value string) {
		for _, reader := range []io.Reader{
			bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body)),
			iotest.DataErrReader(bytes.NewReader(body)),
		} {
			got, err := io.ReadAll(egress.Hiding(io.NopCloser(reader), value))
			if err != nil || len(got) != len(body) {
				t.Fatalf("%q became %q, %v", body, got, err)
			}
			if len(value) >= 4 && !strings.Contains(value, "*") && bytes.Contains(got, []byte(value)) {
				t.Fatalf("%q is in %q", value, got)
			}
			for i, b := range got {
				if b != body[i] && b != '*' {
					t.Fatalf("%q became %q", body, got)
				}
			}
		}
	})
}
