package s3

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

func TestMain(m *testing.M) {
	minio.DefaultRetryUnit, minio.DefaultRetryCap = time.Millisecond, 10*time.Millisecond
	goleak.VerifyTestMain(m)
}

// fake is a store with the requests that Put of small objects, Open, Stat, Remove and List send.
// Module scripts tests against real stores.
type fake struct {
	*httptest.Server
	// fault answers a request in the place of the store, or returns false.
	fault func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	kept     map[string]*kept // by key
	requests []string         // METHOD KEY, and copy
	now      time.Time        // a second later after each change
	uploads  map[string]time.Time
}

type kept struct {
	data     []byte
	digest   string
	modified time.Time
}

// startFake starts a store with the bucket "bucket".
func startFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{kept: map[string]*kept{}, uploads: map[string]time.Time{}, now: time.Now().Truncate(time.Second).UTC()}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
		"AWS_ENDPOINT_URL": f.URL, "AWS_ENDPOINT_URL_S3": "",
	} {
		t.Setenv(name, value)
	}
	return f
}

// open opens the bucket.
func (f *fake) open(t *testing.T, o Options) *Store {
	t.Helper()
	s := f.connect(t, o)
	if err := s.checkBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// connect trusts the certificate of the store.
func (f *fake) connect(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := connect("s3://bucket/a/b?region=us-east-1", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(f.Certificate())
	s.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return s
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.fault != nil && f.fault(w, r) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	name := r.Method + " " + key
	if r.Header.Get("X-Amz-Copy-Source") != "" {
		name += " copy"
	}
	f.requests = append(f.requests, name)
	switch {
	case bucket != "bucket":
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case key == "" && r.URL.Query().Has("uploads"):
		f.listUploads(w)
	case key == "" && r.Method == http.MethodGet:
		f.list(w, r.URL.Query().Get("prefix"))
	case key != "":
		f.serveObject(w, r, key)
	}
}

func (f *fake) serveObject(w http.ResponseWriter, r *http.Request, key string) {
	o := f.kept[key]
	isCopy := r.Header.Get("X-Amz-Copy-Source") != ""
	switch {
	case r.Method == http.MethodDelete && r.URL.Query().Has("uploadId"):
		delete(f.uploads, key)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		delete(f.kept, key)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut && !isCopy:
		data, _ := io.ReadAll(r.Body)
		f.now = f.now.Add(time.Second)
		f.kept[key] = &kept{data, r.Header.Get("X-Amz-Meta-Sha256"), f.now}
		w.Header().Set("Etag", `"x"`)
	case o == nil:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	case isCopy:
		f.now = f.now.Add(time.Second)
		o.modified = f.now
		_, _ = fmt.Fprintf(w, "<CopyObjectResult><LastModified>%s</LastModified><ETag>x</ETag></CopyObjectResult>",
			o.modified.Format("2006-01-02T15:04:05.000Z"))
	default:
		w.Header().Set("Etag", `"x"`)
		w.Header().Set("X-Amz-Meta-Sha256", o.digest)
		http.ServeContent(w, r, "", o.modified, bytes.NewReader(o.data))
	}
}

func (f *fake) list(w http.ResponseWriter, prefix string) {
	var page struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []struct {
			Key          string
			Size         int
			LastModified string
		}
	}
	for _, key := range sortedKeys(f.kept) {
		if strings.HasPrefix(key, prefix) {
			page.Contents = append(page.Contents, struct {
				Key          string
				Size         int
				LastModified string
			}{key, len(f.kept[key].data), f.kept[key].modified.Format(time.RFC3339)})
		}
	}
	_ = xml.NewEncoder(w).Encode(page)
}

func (f *fake) listUploads(w http.ResponseWriter) {
	_, _ = io.WriteString(w, "<ListMultipartUploadsResult>")
	for _, key := range sortedKeys(f.uploads) {
		_, _ = fmt.Fprintf(w, "<Upload><Key>%s</Key><UploadId>id</UploadId><Initiated>%s</Initiated></Upload>", key,
			f.uploads[key].UTC().Format(time.RFC3339))
	}
	_, _ = io.WriteString(w, "</ListMultipartUploadsResult>")
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>message of the store</Message></Error>", code)
}

func put(t *testing.T, s *Store, text string) objects.Object {
	t.Helper()
	o, err := s.Put(t.Context(), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func read(ctx context.Context, s *Store, digest string) (string, error) {
	r, err := s.Open(ctx, digest)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return string(data), err
}

func TestAnObject(t *testing.T) {
	f := startFake(t)
	s := f.open(t, Options{})
	o := put(t, s, "abc")
	if got := f.kept["a/b/"+o.Digest]; got == nil || string(got.data) != "abc" || got.digest != o.Digest {
		t.Errorf("the store has %+v", f.kept)
	}
	if described, err := s.Stat(t.Context(), o.Digest); err != nil || described != o {
		t.Errorf("%+v, %v, want %+v", described, err, o)
	}
	if text, err := read(t.Context(), s, o.Digest); err != nil || text != "abc" {
		t.Errorf("%q, %v", text, err)
	}
	if err := s.Remove(t.Context(), o.Digest); err != nil {
		t.Error(err)
	}
	if _, err := s.Stat(t.Context(), o.Digest); !errors.Is(err, objects.ErrNotFound) {
		t.Error(err)
	}
	if _, err := s.Open(t.Context(), o.Digest); !errors.Is(err, objects.ErrNotFound) {
		t.Error(err)
	}
}

func TestNoRequestHasAnInvalidDigest(t *testing.T) {
	f := startFake(t)
	s := f.open(t, Options{})
	f.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		t.Errorf("a request for %s", r.URL)
		return false
	}
	for _, digest := range []string{"", "../x", strings.Repeat("../", 21) + "x", strings.Repeat("A", 64)} {
		if _, err := s.Stat(t.Context(), digest); err == nil {
			t.Errorf("%q names an object", digest)
		}
		if _, err := s.Open(t.Context(), digest); err == nil {
			t.Errorf("%q names an object", digest)
		}
		if err := s.Remove(t.Context(), digest); err == nil {
			t.Errorf("%q names an object", digest)
		}
	}
}

// Put copies an existing object. If the store cannot, or its copy keeps the time, it uploads again.
func TestExistingBytesAreRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter) // to a copy; nil: that of the store
		want   string                      // the last changes
	}{
		"by a copy": {nil, "PUT,PUT copy"},
		"by an upload, without copies": {
			func(w http.ResponseWriter) { refuse(w, http.StatusNotImplemented, "NotImplemented") }, "PUT,PUT",
		},
		"by an upload, if copies are forbidden": {
			func(w http.ResponseWriter) { refuse(w, http.StatusForbidden, "AccessDenied") }, "PUT,PUT",
		},
		"by an upload, if a copy keeps the time": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "<CopyObjectResult>"+
				"<LastModified>2026-01-01T00:00:00Z</LastModified></CopyObjectResult>")
		}, "PUT,PUT"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if c.answer == nil || r.Header.Get("X-Amz-Copy-Source") == "" {
					return false
				}
				c.answer(w)
				return true
			}
			s := f.open(t, Options{})
			first := put(t, s, "abc")
			if again := put(t, s, "abc"); !again.Stored.After(first.Stored) || again.Size != 3 {
				t.Errorf("%+v after %+v", again, first)
			}

			var changes []string
			for _, name := range f.requests {
				if strings.HasPrefix(name, "PUT") {
					changes = append(changes, strings.Replace(name, " a/b/"+first.Digest, "", 1))
				}
			}
			if got := strings.Join(changes, ","); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// What Put has not left as it is, such as an object without its metadata, is uploaded again.
func TestOtherBytesAreReplaced(t *testing.T) {
	f := startFake(t)
	s := f.open(t, Options{})
	o := put(t, s, "abc")
	f.kept["a/b/"+o.Digest] = &kept{data: []byte("abd"), modified: f.now}
	if _, err := read(t.Context(), s, o.Digest); !errors.Is(err, objects.ErrDamaged) {
		t.Error(err)
	}
	put(t, s, "abc")
	if text, err := read(t.Context(), s, o.Digest); err != nil || text != "abc" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestErrorsSayWhatToChange(t *testing.T) {
	f := startFake(t)
	s := f.open(t, Options{})
	o := put(t, s, "abc")
	for _, c := range []struct {
		status int
		code   string
		want   string
	}{
		{403, "AccessDenied", "the store refuses it (403 AccessDenied): set AWS_ACCESS_KEY_ID"},
		{403, "SignatureDoesNotMatch", "the store refuses it (403 SignatureDoesNotMatch): set AWS_ACCESS_KEY_ID"},
		{403, "RequestTimeTooSkewed", "set the clock of this machine (403 RequestTimeTooSkewed)"},
		{404, "NoSuchBucket", "the bucket does not exist: create it, or name another one (404 NoSuchBucket)"},
		{400, "AuthorizationHeaderMalformed", "add region=REGION to its address"},
		{503, "SlowDown", "the store is overloaded (503 SlowDown): try again later"},
		{429, "", "the store is overloaded (429 Too Many Requests): try again later"},
		{507, "XMinioStorageFull", "the store is full: remove something"},
		{500, "InternalError", "the store answers 500 InternalError: "},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("X-Minio-Error-Code", c.code) // the answer to HEAD has no body
				refuse(w, c.status, c.code)
				return true
			}
			for attempt, err := range attemptAll(t, s, o) {
				if err == nil || !strings.Contains(err.Error(), c.want) ||
					!strings.Contains(err.Error(), "s3://bucket/a/b/") || errors.Is(err, objects.ErrNotFound) {
					t.Errorf("%s: %v, want %q", attempt, err, c.want)
				}
			}
		})
	}
}

// attemptAll calls every method, for an object and for other bytes.
func attemptAll(t *testing.T, s *Store, o objects.Object) map[string]error {
	t.Helper()
	_, opened := read(t.Context(), s, o.Digest)
	_, described := s.Stat(t.Context(), o.Digest)
	_, putAgain := s.Put(t.Context(), strings.NewReader("other bytes"))
	return map[string]error{
		"checkBucket": s.checkBucket(t.Context()), "Open": opened, "Stat": described, "Put": putAgain,
		"Remove": s.Remove(t.Context(), o.Digest),
		"List":   s.List(t.Context(), func(objects.Object) error { return nil }),
	}
}

func TestTroubleThatPasses(t *testing.T) {
	f := startFake(t)
	refused := 0
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		refused++
		if refused%3 == 0 {
			return false
		}
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	}
	s := f.open(t, Options{})
	o := put(t, s, "abc")
	if text, err := read(t.Context(), s, o.Digest); err != nil || text != "abc" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestASilentStore(t *testing.T) {
	f := startFake(t)
	s := f.open(t, Options{Silence: 300 * time.Millisecond})
	o := put(t, s, "abc")
	f.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise, the server does not see the end of the connection
		<-r.Context().Done()
		return true
	}
	for attempt, err := range attemptAll(t, s, o) {
		if err == nil || !strings.Contains(err.Error(), "the store does not answer: ") ||
			!strings.Contains(err.Error(), "check that "+f.URL+" is the endpoint") {
			t.Errorf("%s: %v", attempt, err)
		}
	}
}

// The store sends a part of the object, and then nothing, whenever it is asked.
func TestAStoreThatBecomesSilent(t *testing.T) {
	f := startFake(t)
	s := f.open(t, Options{Silence: 300 * time.Millisecond})
	o := put(t, s, "abc")
	f.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Length", "3")
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		if r.Header.Get("Range") == "" {
			_, _ = io.WriteString(w, "a")
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	}
	text, err := read(t.Context(), s, o.Digest)
	if err == nil || text != "a" || !strings.Contains(err.Error(), "the store does not answer: ") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAnUnreachableStore(t *testing.T) {
	f := startFake(t)
	s := f.open(t, Options{})
	o := put(t, s, "abc")
	f.Close()
	for attempt, err := range attemptAll(t, s, o) {
		if err == nil || !strings.Contains(err.Error(), "cannot reach the store: ") {
			t.Errorf("%s: %v", attempt, err)
		}
	}
}

func TestAReaderResumes(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	for name, c := range map[string]struct {
		part int // the bytes that a connection sends
		want string
	}{
		"after each part":  {30_000, ""},
		"but not for ever": {0, "the store closes the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			s := f.open(t, Options{})
			o := put(t, s, text)
			f.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet {
					return false
				}
				from, _ := strconv.Atoi(strings.Trim(r.Header.Get("Range"), "bytes=-"))
				w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
				w.Header().Set("Content-Length", strconv.Itoa(len(text)-from))
				if from > 0 {
					w.WriteHeader(http.StatusPartialContent)
				}
				_, _ = io.WriteString(w, text[from:min(len(text), from+c.part)])
				_ = http.NewResponseController(w).Flush()
				if from+c.part < len(text) {
					panic(http.ErrAbortHandler) // in the middle of the answer
				}
				return true
			}
			got, err := read(t.Context(), s, o.Digest)
			if c.want == "" && (err != nil || got != text) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if c.want != "" && (err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

func TestListLeavesOutOtherKeys(t *testing.T) {
	f := startFake(t)
	s := f.open(t, Options{})
	o := put(t, s, "abc")
	other := strings.Repeat("0", 64)
	for _, key := range []string{"a/" + other, "a/b/notes.txt", "a/b/" + other + "/x", "a/bc/" + other, other} {
		f.kept[key] = &kept{modified: f.now}
	}
	f.uploads = map[string]time.Time{
		"a/b/" + other: time.Now().Add(-25 * time.Hour), "a/b/" + o.Digest: time.Now().Add(-23 * time.Hour),
		"a/b/other": time.Now().Add(-25 * time.Hour),
	}

	var listed []objects.Object
	if err := s.List(t.Context(), func(o objects.Object) error {
		listed = append(listed, o)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(listed) != 1 || listed[0].Digest != o.Digest || listed[0].Size != 3 || !listed[0].Stored.Equal(o.Stored) {
		t.Errorf("%+v, want %+v", listed, o)
	}
	if _, isLeft := f.uploads["a/b/"+other]; isLeft || len(f.uploads) != 2 {
		t.Errorf("uploads are left: %v", f.uploads)
	}
}

func TestAnUnsortedListIsAnError(t *testing.T) {
	f := startFake(t)
	s := f.open(t, Options{})
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, "<ListBucketResult>")
		for _, digit := range []string{"1", "0"} {
			_, _ = fmt.Fprintf(w, "<Contents><Key>a/b/%s</Key></Contents>", strings.Repeat(digit, 64))
		}
		_, _ = io.WriteString(w, "</ListBucketResult>")
		return true
	}
	err := s.List(t.Context(), func(objects.Object) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "does not sort keys") {
		t.Error(err)
	}
}

func TestAMissingBucket(t *testing.T) {
	f := startFake(t)
	s := f.connect(t, Options{})
	s.bucket = "other"
	err := s.checkBucket(t.Context())
	const want = "cannot open the bucket s3://other/a/b/: the bucket does not exist"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "")
	for address, want := range map[string]string{
		"s3://bucket": "", "s3://bucket/": "", "s3://bucket.with.dots/a/b/": "",
		"s3://bucket/a?endpoint=http://127.0.0.1:7070&region=x&style=host": "",
		"bucket": "write s3://BUCKET", "s3:///a": "write s3://BUCKET", "https://bucket": "write s3://BUCKET",
		"s3://bucket:80": "write s3://BUCKET", "s3://bucket#x": "write s3://BUCKET", "s3://%zz": "write s3://BUCKET",
		"s3://key:secret@bucket": "it has a password", "s3://bucket/a/../b": "neither . nor ..",
		"s3://bucket/..": "neither . nor ..", "s3://bucket/a//b": "no empty part",
		"s3://bucket?keys=x": `unknown parameter "keys"`, "s3://bucket?region=": "it must give region once",
		"s3://bucket?region=a&region=b": "it must give region once", "s3://bucket?style=x": "neither path nor host",
		"s3://bucket?region=%zz": "its parameters are malformed", "s3://bucket?endpoint=x": "cannot use the endpoint",
	} {
		t.Run(address, func(t *testing.T) {
			s, err := connect(address, Options{})
			if err == nil {
				s.Close()
			}
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
