package providers_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// The bounds on calls to hostile servers.
const (
	mostOfAReply = 1 << 20
	patience     = 300 * time.Millisecond
	mostMemory   = 64 << 20 // that a call may allocate, in bytes
)

// hostileServers send replies that exceed a bound or never end. A call must fail with one of the
// kinds.
var hostileServers = []struct {
	name  string
	serve http.HandlerFunc
	kinds []error
}{
	{"pieces", repeat("text/event-stream", "data: "+piece+"\n\n"), []error{kind.ErrTooLarge}},
	{"comments", repeat("text/event-stream", ": still here\n\n"), []error{kind.ErrTooLarge}},
	{"empty lines", repeat("text/event-stream", "\n"), []error{kind.ErrTooLarge, kind.ErrMalformed}},
	{"one line", repeat("text/event-stream", "data: x"), []error{kind.ErrTooLarge, kind.ErrMalformed}},
	{"spaces", repeat("application/json", "    "), []error{kind.ErrTooLarge, kind.ErrMalformed, kind.ErrCut}},
	{"brackets", repeat("application/json", "["), []error{kind.ErrTooLarge, kind.ErrMalformed, kind.ErrCut}},
	{"a compressed reply", serveCompressed, []error{kind.ErrTooLarge, kind.ErrMalformed, kind.ErrCut}},
	{"drops", serveDrops, []error{kind.ErrTimeout}},
	{"a length that is not true", serveWrongLength, []error{kind.ErrTimeout}},
	{"an error", repeatStatus(http.StatusInternalServerError, "text/html", "<p>away"), []error{kind.ErrServer}},
	{
		"headers", hijack("HTTP/1.1 200 OK\r\n", "X-Header: text\r\n"),
		[]error{kind.ErrUnreachable, kind.ErrCut, kind.ErrMalformed},
	},
	{
		"interim replies", hijack("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
		[]error{kind.ErrUnreachable, kind.ErrCut, kind.ErrMalformed},
	},
}

// piece is an event that continues a reply in the format of openai.
const piece = `{"choices":[{"index":0,"delta":{"content":"more "}}]}`

// repeat sends the same text until the client disconnects.
func repeat(contentType, text string) http.HandlerFunc {
	return repeatStatus(http.StatusOK, contentType, text)
}

func repeatStatus(status int, contentType, text string) http.HandlerFunc {
	text = strings.Repeat(text, 1+4096/len(text))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		for err := error(nil); err == nil && r.Context().Err() == nil; {
			_, err = io.WriteString(w, text)
		}
	}
}

// serveCompressed sends a gigabyte that is compressed to a megabyte.
func serveCompressed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	packer, spaces := gzip.NewWriter(w), []byte(strings.Repeat(" ", 1<<20))
	for range 1 << 10 {
		if _, err := packer.Write(spaces); err != nil || r.Context().Err() != nil {
			return
		}
	}
	_ = packer.Close() // the client may have disconnected
}

// serveDrops sends single bytes with pauses, so that no wait is long.
func serveDrops(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for err := error(nil); err == nil && r.Context().Err() == nil; time.Sleep(patience / 30) {
		if _, err = io.WriteString(w, " "); err == nil {
			err = http.NewResponseController(w).Flush()
		}
	}
}

// serveWrongLength announces a petabyte and sends nothing.
func serveWrongLength(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000000000000000")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // the client may have disconnected
	<-r.Context().Done()
}

// hijack sends output that the standard library would not send.
func hijack(first, part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		part := strings.Repeat(part, 100)
		for _, err = io.WriteString(conn, first); err == nil; {
			_, err = io.WriteString(conn, part)
		}
	}
}

// TestRepliesWithoutAnEnd checks that a call ends within its bounds, whatever a server sends. A
// client without bounds is the control.
func TestRepliesWithoutAnEnd(t *testing.T) {
	for _, c := range hostileServers {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.serve)
			defer server.Close()
			if n, err := readNaively(t, server.URL); n <= mostOfAReply && err == nil {
				t.Errorf("a client without bounds read %d bytes to their end", n)
			}

			for _, format := range []string{"openai", "anthropic"} {
				for _, streamed := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/stream=%v", format, streamed), func(t *testing.T) {
						ask(t, server.URL, format, streamed, c.kinds)
					})
				}
			}
		})
	}
}

// readNaively reads a reply without bounds, for at most the time that a call may take.
func readNaively(t *testing.T, url string) (int64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

// ask makes a call and checks that it fails with one of the kinds.
func ask(t *testing.T, url, format string, streamed bool, kinds []error) {
	t.Helper()
	env := func(name string) string {
		switch {
		case name == "OPENAI_BASE_URL":
			return url + "/v1"
		case name == "ANTHROPIC_BASE_URL":
			return url
		case strings.HasSuffix(name, "_API_KEY"):
			return llmtest.Key
		}
		return ""
	}
	registry, err := providers.New(providers.Options{Env: env, HTTP: providers.HTTP{
		Timeout: patience, Attempts: 1, Outage: -1, MaxResponse: mostOfAReply,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	model, err := registry.Resolve(format + "/any")
	if err != nil {
		t.Fatal(err)
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err = caller{T: t, model: model, format: format, streamed: streamed}.ask(t.Context(), llm.Request{})
	runtime.ReadMemStats(&after)

	var failure *llm.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v", err)
	}
	expected := errors.Is(err, kind.ErrTimeout) // a busy machine may cause a timeout
	for _, want := range kinds {
		expected = expected || errors.Is(err, want)
	}
	if !expected || len(err.Error()) > 10_000 || strings.Contains(err.Error(), llmtest.Key) {
		t.Errorf("got %.500v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > mostMemory {
		t.Errorf("%d bytes were allocated", grown)
	}
}
