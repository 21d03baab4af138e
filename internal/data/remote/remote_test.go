package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	pause = time.Millisecond
	goleak.VerifyTestMain(m)
}

// serve starts a server with TLS, and returns its host and a client that trusts the server and
// lists it as allowed.
func serve(t *testing.T, handler http.HandlerFunc) (host string, c *Client) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	host = server.Listener.Addr().String()
	return host, trusting(t, server, host)
}

func trusting(t *testing.T, server *httptest.Server, servers ...string) *Client {
	t.Helper()
	c, err := New(servers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return c
}

// read reads the file at an address.
func read(t *testing.T, c *Client, address string) (string, error) {
	t.Helper()
	f, err := c.OpenURL(t.Context(), address)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestAFileIsRead(t *testing.T) {
	host, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Now(), strings.NewReader("a text of "+r.URL.Path))
	})
	f, err := c.OpenURL(t.Context(), "https://"+host+"/logs/app%20one.log?key=secret")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if string(data) != "a text of /logs/app one.log" || err != nil || f.Close() != nil {
		t.Errorf("%q, %v", data, err)
	}
	if f.Name != "app one.log" || f.Size != int64(len(data)) {
		t.Errorf("%q has %d bytes", f.Name, f.Size)
	}
}

// broken serves text, but breaks each connection after part bytes.
func broken(text string, part int, version func(request int) string) http.HandlerFunc {
	requests := 0
	return func(w http.ResponseWriter, r *http.Request) {
		requests++
		from := 0
		if given := r.Header.Get("Range"); given != "" {
			from, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(given, "bytes="), "-"))
		}
		if v := version(requests); v != "" {
			w.Header().Set("Etag", v)
			if given := r.Header.Get("If-Range"); given != "" && given != v {
				from = 0
			}
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(text)-from))
		if from > 0 {
			w.Header().Set("Content-Range", "bytes "+strconv.Itoa(from)+"-"+strconv.Itoa(len(text)-1)+"/"+
				strconv.Itoa(len(text)))
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = io.WriteString(w, text[from:min(len(text), from+part)])
		if from+part < len(text) {
			panic(http.ErrAbortHandler) // in the middle of the response
		}
	}
}

func TestABrokenConnectionGoesOn(t *testing.T) {
	text := strings.Repeat("0123456789", 100_000)
	same := func(int) string { return `"v1"` }
	for name, c := range map[string]struct {
		part    int
		version func(int) string
		want    string
	}{
		"in four parts":       {300_000, same, ""},
		"in more than it may": {100_000, same, "the connection broke after"},
		"without a version":   {300_000, func(int) string { return "" }, "the connection broke after"},
		"of a file that changes": {
			300_000, func(n int) string { return `"v` + strconv.Itoa(n) + `"` }, "the file has changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			host, client := serve(t, broken(text, c.part, c.version))
			got, err := read(t, client, "https://"+host+"/x")
			if c.want != "" {
				wantError(t, err, c.want)
			} else if err != nil || got != text {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

func TestAnswersWithoutAFile(t *testing.T) {
	unwell := 2
	host, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch code, _ := strconv.Atoi(r.URL.Path[1:]); {
		case code == http.StatusServiceUnavailable && unwell == 0:
			_, _ = io.WriteString(w, "well")
		case code == http.StatusServiceUnavailable:
			unwell--
			w.WriteHeader(code)
		case code == 1:
			http.Redirect(w, r, "/1", http.StatusFound)
		case code == 2:
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		case code == 3:
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusFound)
		default:
			w.WriteHeader(code)
		}
	})
	for path, want := range map[string]string{
		"404?key=secret": "the server has no such file (404 Not Found)", "403": "refuses the file (403 Forbidden)",
		"500": "the server answers 500", "1": "redirects more than 5 times", "2": "without encryption",
		"3": "127.0.0.1:1 is not on the list of context servers",
	} {
		t.Run(path, func(t *testing.T) {
			_, err := read(t, c, "https://"+host+"/"+path)
			wantError(t, err, want)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has the key: %v", err)
			}
		})
	}
	if got, err := read(t, c, "https://"+host+"/503"); got != "well" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Without a list, the client reaches only servers on the public Internet, regardless of their
// names.
func TestPrivateServersAreRefused(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the server was reached")
	}))
	defer server.Close()
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	c := trusting(t, server)
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "2130706433"} {
		t.Run(host, func(t *testing.T) {
			_, err := c.OpenURL(t.Context(), "https://"+host+":"+port+"/latest/meta-data")
			if err == nil {
				t.Errorf("%s was reached", host)
			} else if host == "127.0.0.1" && !errors.Is(err, errPrivate) {
				t.Error(err)
			}
		})
	}
	for address, want := range map[string]string{
		"http://example.com/a":      "is not encrypted: use https://",
		"https://u:p@example.com/a": "a password is not supported",
		"ftp://example.com/a":       "write https://HOST/PATH",
		"https:///a":                "write https://HOST/PATH",
		"https://%zz":               "cannot be read",
	} {
		t.Run(address, func(t *testing.T) {
			_, err := c.OpenURL(t.Context(), address)
			wantError(t, err, want)
		})
	}
	if _, err := New([]string{"a/b"}); err == nil {
		t.Error("a path is taken as a server")
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ended := make(chan struct{})
	host, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "12345")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	f, err := c.OpenURL(ctx, "https://"+host+"/x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	want := errors.New("enough")
	cancel(want)
	if _, err := f.Read(make([]byte, 5)); !errors.Is(err, want) {
		t.Error(err)
	}
	<-ended
}

func TestIsAddress(t *testing.T) {
	for path, want := range map[string]bool{
		"https://a/b": true, "HTTP://a": true, "s3://a": true, "a.txt": false, "/x://y": false,
		"file:///etc": false, "": false,
	} {
		t.Run(path, func(t *testing.T) {
			if IsAddress(path) != want {
				t.Errorf("%q", path)
			}
		})
	}
}
