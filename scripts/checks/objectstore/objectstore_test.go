//go:build objectstore

package objectstore

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/objects/s3"
	"github.com/rlmhq/rlm/internal/testing/objectstest"
)

// Versity's store serves a folder. Its copies keep the time of an object, so Put uploads again.
func TestContractOfVersity(t *testing.T) {
	g := startGateway(t)
	stores := 0
	objectstest.Run(t, func(t *testing.T) objectstest.Kit {
		t.Helper()
		stores++
		prefix := fmt.Sprintf("store/%d", stores)
		return objectstest.Kit{
			Open: func() objects.Store {
				return openObjects(t, g.endpoint(), prefix, s3.Options{SpoolDir: t.TempDir()})
			},
			Damage: func(t *testing.T, digest string, change func([]byte) []byte) {
				t.Helper()
				path := g.path(prefix + "/" + digest)
				stored, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, change(stored), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// GoFakeS3 is in memory. Its copies renew the time of an object. It has TLS, as most stores have:
// then requests sign no bytes, and the MD5 protects them.
func TestContractOfGoFakeS3(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SSL_CERT_FILE names the certificate")
	}
	setKeys(t)
	fake := gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog()))
	server := httptest.NewTLSServer(fake.Server())
	defer server.Close()
	certificate := filepath.Join(t.TempDir(), "certificate.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(certificate, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", certificate) // before the first use of TLS in this process

	makeBucket(t, server.URL)
	stores := 0
	objectstest.Run(t, func(t *testing.T) objectstest.Kit {
		t.Helper()
		stores++
		prefix := fmt.Sprintf("store/%d", stores)
		return objectstest.Kit{
			Open: func() objects.Store { return openObjects(t, server.URL, prefix, s3.Options{}) },
			Damage: func(t *testing.T, digest string, change func([]byte) []byte) {
				t.Helper()
				replaceObject(t, connectClient(t, server.URL), prefix+"/"+digest, change)
			},
		}
	})
}

// replaceObject replaces the bytes of a key.
func replaceObject(t *testing.T, client *minio.Client, key string, change func([]byte) []byte) {
	t.Helper()
	object, err := client.GetObject(t.Context(), bucket, key, minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	stored, err := io.ReadAll(object)
	if err != nil {
		t.Fatal(err)
	}
	stored = change(stored)
	_, err = client.PutObject(t.Context(), bucket, key, bytes.NewReader(stored), int64(len(stored)),
		minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAKilledStoreLosesNothing kills the store while objects are put: small ones, and some that are
// uploaded in parts. Whatever Put acknowledged must be whole afterwards.
func TestAKilledStoreLosesNothing(t *testing.T) {
	g := startGateway(t)
	const kills, writers = 4, 4
	var mu sync.Mutex
	acknowledged := map[string]int64{}
	failed := 0

	for round := range kills {
		s := openObjects(t, g.endpoint(), "killed", s3.Options{Silence: 20 * time.Second})
		var wait sync.WaitGroup
		begun := make(chan struct{}, writers)
		for writer := range writers {
			wait.Go(func() {
				for i := 0; ; i++ {
					size := int64(1000 * (i + 1))
					if writer == 0 {
						size = 9<<20 + int64(i) // in parts
					}
					// The reader is used up before the first request, so the kill hits the requests.
					unique := strings.NewReader(fmt.Sprint(round, i))
					from := io.MultiReader(objectstest.Bytes(byte(writer), size), unique)
					o, err := s.Put(t.Context(), from)
					mu.Lock()
					if err == nil {
						acknowledged[o.Digest] = o.Size
					} else {
						failed++
					}
					mu.Unlock()
					if err != nil {
						return
					}
					select {
					case begun <- struct{}{}:
					default:
					}
				}
			})
		}
		for range writers {
			<-begun
		}
		g.kill(t)
		wait.Wait() // each writer has an error
		g.start(t)
	}

	if failed != kills*writers || len(acknowledged) < kills {
		t.Errorf("%d calls failed, %d objects are acknowledged", failed, len(acknowledged))
	}
	s := openObjects(t, g.endpoint(), "killed", s3.Options{})
	for digest, size := range acknowledged {
		wantWhole(t, s, digest, size)
	}
	err := s.List(t.Context(), func(o objects.Object) error {
		wantWhole(t, s, o.Digest, o.Size) // even if it was not acknowledged
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d objects were acknowledged, %d calls failed", len(acknowledged), failed)
}

func wantWhole(t *testing.T, s objects.Store, digest string, size int64) {
	t.Helper()
	r, err := s.Open(t.Context(), digest)
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); err != nil || n != size { // the reader verifies the digest
		t.Errorf("%d of %d bytes of %s: %v", n, size, digest, err)
	}
}

// TestAReaderSurvivesARestart kills the store while an object is read.
func TestAReaderSurvivesARestart(t *testing.T) {
	g := startGateway(t)
	s := openObjects(t, g.endpoint(), "read", s3.Options{})
	o, err := s.Put(t.Context(), objectstest.Bytes(1, 40<<20))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), o.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	g.kill(t)
	g.start(t)
	if n, err := io.Copy(io.Discard, r); err != nil || n != 39<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// startProxy starts a proxy before a store. fault answers in its place, or returns false.
func startProxy(t *testing.T, g *gateway, fault func(w http.ResponseWriter, r *http.Request) bool) (endpoint string) {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: g.address})
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fault(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func slowDown(w http.ResponseWriter) {
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
}

// Every second request is refused: parts of an upload, its end, and parts of a download.
func TestRefusalsThatPass(t *testing.T) {
	g := startGateway(t)
	var requests atomic.Int64
	endpoint := startProxy(t, g, func(w http.ResponseWriter, _ *http.Request) bool {
		isRefused := requests.Add(1)%2 == 1
		if isRefused {
			slowDown(w)
		}
		return isRefused
	})
	s := openObjects(t, endpoint, "refused", s3.Options{})
	for _, size := range []int64{1000, 30 << 20} {
		o, err := s.Put(t.Context(), objectstest.Bytes(2, size))
		if err != nil {
			t.Fatal(err)
		}
		wantWhole(t, s, o.Digest, size)
	}
}

// The store refuses, or hangs, from some request on. Each call must end with an error, and leave
// nothing that seems whole.
func TestTroubleThatStays(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(w http.ResponseWriter, r *http.Request)
		want  string
	}{
		"it refuses": {func(w http.ResponseWriter, _ *http.Request) { slowDown(w) }, "the store is overloaded (503"},
		"it hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise, it does not see the end of the connection
			<-r.Context().Done()
		}, "check that http://"},
		"it breaks connections": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "check that http://",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := startGateway(t)
			var isBad atomic.Pointer[func(*http.Request) bool]
			endpoint := startProxy(t, g, func(w http.ResponseWriter, r *http.Request) bool {
				matches := isBad.Load()
				if matches == nil || !(*matches)(r) {
					return false
				}
				c.fault(w, r)
				return true
			})
			s := openObjects(t, endpoint, "bad", s3.Options{Silence: time.Second})
			o, err := s.Put(t.Context(), strings.NewReader("before"))
			if err != nil {
				t.Fatal(err)
			}

			wantError := func(attempt string, err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, objects.ErrNotFound) ||
					errors.Is(err, objects.ErrDamaged) || errors.Is(err, io.EOF) {
					t.Errorf("%s: %v, want %q", attempt, err, c.want)
				}
			}
			for attempt, matches := range map[string]func(*http.Request) bool{
				"the beginning":   func(*http.Request) bool { return true },
				"the second part": func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "2" },
				"the end": func(r *http.Request) bool {
					return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
				},
			} {
				isBad.Store(&matches)
				_, err := s.Put(t.Context(), objectstest.Bytes(3, 20<<20))
				wantError(attempt, err)
			}

			always := func(*http.Request) bool { return true }
			isBad.Store(&always)
			_, err = s.Open(t.Context(), o.Digest)
			wantError("Open", err)
			_, err = s.Stat(t.Context(), o.Digest)
			wantError("Stat", err)
			wantError("Remove", s.Remove(t.Context(), o.Digest))
			wantError("List", s.List(t.Context(), func(objects.Object) error { return nil }))

			isBad.Store(nil)
			all := 0
			if err := s.List(t.Context(), func(objects.Object) error {
				all++
				return nil
			}); err != nil || all != 1 {
				t.Errorf("the store has %d objects, %v", all, err)
			}
			wantWhole(t, s, o.Digest, 6)
		})
	}
}

// The proxy cuts every answer with a body after some bytes, or stops sending.
func TestADownloadThatStops(t *testing.T) {
	g := startGateway(t)
	var hangs atomic.Bool
	upstream := &url.URL{Scheme: "http", Host: g.address}
	endpoint := startProxy(t, g, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/stops/") {
			return false
		}
		request := r.Clone(r.Context())
		request.URL.Scheme, request.URL.Host, request.RequestURI = upstream.Scheme, upstream.Host, ""
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		n, err := io.Copy(w, io.LimitReader(answer.Body, 3<<20))
		if err == nil && n < 3<<20 {
			return true // it was the last part
		}
		_ = http.NewResponseController(w).Flush()
		if hangs.Load() {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	})

	s := openObjects(t, endpoint, "stops", s3.Options{Silence: 2 * time.Second})
	const size = 20<<20 + 1
	o, err := s.Put(t.Context(), objectstest.Bytes(4, size))
	if err != nil {
		t.Fatal(err)
	}
	for _, isHanging := range []bool{false, true} {
		hangs.Store(isHanging)
		wantWhole(t, s, o.Digest, size) // each attempt brings some bytes
	}
}

func TestABucketOfOthers(t *testing.T) {
	g := startGateway(t)
	address := "s3://%s/x?endpoint=" + g.endpoint()
	_, err := s3.Open(t.Context(), fmt.Sprintf(address, "missing"), s3.Options{})
	const missing = "cannot open the bucket s3://missing/x/: the bucket does not exist"
	if err == nil || !strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	_, err = s3.Open(t.Context(), fmt.Sprintf(address, bucket), s3.Options{})
	if err == nil || !strings.Contains(err.Error(), "the store refuses it (403") ||
		!strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID") {
		t.Error(err)
	}
}
