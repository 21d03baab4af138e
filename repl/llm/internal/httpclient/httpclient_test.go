package httpclient

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRetryAfterIsReadInEveryForm(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		header, ms string
		want       time.Duration
	}{
		{"", "", 0},
		{"3", "", 3 * time.Second},
		{"3", "250", 250 * time.Millisecond},
		{"3", "soon", 3 * time.Second},
		{"-3", "", 0},
		{"soon", "", 0},
		{"1.5", "", 0},
		{"Fri, 02 Jan 2026 03:04:35 GMT", "", 30 * time.Second},
		{"Fri, 02 Jan 2026 03:04:00 GMT", "", 0},
		{"Fri, 02 Jan 9026 03:04:00 GMT", "", maxRetryAfter},
		{"9223372036854775807", "", maxRetryAfter},
		{"99999999999999999999999999", "", maxRetryAfter},
		{"", "9223372036854775807", maxRetryAfter},
	} {
		t.Run(c.header, func(t *testing.T) {
			header := http.Header{}
			header.Set("Retry-After", c.header)
			header.Set("Retry-After-Ms", c.ms)
			if got := parseRetryAfter(header, now); got != c.want {
				t.Errorf("%q, %q: %s, want %s", c.header, c.ms, got, c.want)
			}
		})
	}
}

func TestPausesGrowWithinBounds(t *testing.T) {
	c, err := New(Options{
		BaseURL: "http://localhost",
		HTTP:    HTTP{FirstWait: time.Second, MaxWait: 10 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}

	for attempt, mean := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second,
		3: 4 * time.Second, 5: 10 * time.Second, 500: 10 * time.Second,
	} {
		t.Run(fmt.Sprint(attempt), func(t *testing.T) {
			for range 100 {
				pause := c.choosePause(&llm.Error{Attempts: attempt}, time.Hour)
				if pause < mean/2 || pause > min(mean*3/2, 10*time.Second) {
					t.Fatalf("attempt %d: %s", attempt, pause)
				}
			}
		})
	}

	for asked, least := range map[time.Duration]time.Duration{
		10 * time.Second: 10 * time.Second, time.Millisecond: leastPause,
	} {
		pause := c.choosePause(&llm.Error{RetryAfter: asked}, time.Hour)
		if pause < least || pause > least*11/10 {
			t.Errorf("asked for %s, got %s", asked, pause)
		}
	}
}

func TestAServersWordsAreCleaned(t *testing.T) {
	c := &Client{options: Options{Key: llm.NewSecret("sk-key")}}
	for text, want := range map[string]string{
		"bad key sk-key, sk-key!":          "bad key [hidden], [hidden]!",
		"\x1b[31mred\x1b[0m\r\nline\u202e": "[31mred[0m  line",
		strings.Repeat("é", 600):           strings.Repeat("é", 500) + "…",
		"\xff":                             "\ufffd",
		"s\x00k-\u200bkey":                 "[hidden]",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			if got := c.clean(text); got != want {
				t.Errorf("%q: got %q", text, got)
			}
		})
	}
}

func TestFailuresAreReadInEveryDialect(t *testing.T) {
	const invalid = `"type":"invalid_request_error"`
	const poor = "Your credit balance is too low"
	for _, c := range []struct {
		text    string
		kind    error
		message string
	}{
		{
			`{"error":{"message":"m",` + invalid + `,"code":"context_length_exceeded"}}`,
			kind.ErrContextLength, "m",
		},
		{
			`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`,
			kind.ErrServer, "m",
		},
		{
			`{"object":"error","message":"m","type":"BadRequestError","code":400}`,
			kind.ErrBadRequest, "m",
		},
		{`{"error":{"message":"m","code":429}}`, kind.ErrRateLimited, "m"},
		{`{"error":{"message":"m","metadata":{"raw":null}}}`, kind.ErrServer, "m"},
		{`{"error":{"message":"m","metadata":7}}`, kind.ErrServer, "m"},
		{
			`{"error":{"message":"Provider returned error","code":400,"metadata":{"provider_name":"x",` +
				`"raw":"{\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}"}}}`,
			kind.ErrContextLength,
			`Provider returned error: {"message":"prompt is too long: 9 tokens > 8 maximum"}`,
		},
		{`{"error":"m"}`, kind.ErrServer, "m"},
		{`{"detail":"m"}`, kind.ErrServer, "m"},
		{`{"error":{"message":"` + poor + `",` + invalid + `}}`, kind.ErrQuota, poor},
		{`[]`, kind.ErrServer, ""},
		{`<html`, kind.ErrServer, ""},
	} {
		t.Run(fmt.Sprintf("%.60s", c.text), func(t *testing.T) {
			want := llm.Error{Kind: c.kind, Message: c.message}
			if got := ParseFailure([]byte(c.text)); *got != want {
				t.Errorf("%s: got %+v", c.text, got)
			}
		})
	}
}

func TestABodyIsReadToItsBoundAndNoFurther(t *testing.T) {
	for size, want := range map[int]error{9: nil, 10: nil, 11: errTooLarge, 5000: errTooLarge} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := &boundedReader{r: strings.NewReader(strings.Repeat("x", size)), left: 10}
			text, err := io.ReadAll(b)
			if !errors.Is(err, want) || len(text) > 10 || want == nil && len(text) != size {
				t.Errorf("%d bytes: got %d, %v", size, len(text), err)
			}
		})
	}
}

// TestTheErrorSaysWhatCameInPlaceOfAReply checks the errors for a page from a proxy, an empty body
// and a truncated reply.
func TestTheErrorSaysWhatCameInPlaceOfAReply(t *testing.T) {
	const page = "<html>\n<title>Sign in</title>sk-secret"
	for _, c := range []struct {
		status     int
		kind, body string
		cut        int // bytes that are announced but not sent
		want       string
	}{
		{200, "text/html; charset=utf-8", page, 0, `malformed reply (HTTP status 200): HOST sent 38 bytes of ` +
			`text/html, which begin with "<html> <title>Sign in</title>[hidden]"`},
		{200, "application/json", "", 0, `malformed reply (HTTP status 200): HOST sent an empty reply`},
		{200, "text/event-stream", "", 9, `reply cut off (HTTP status 200): HOST sent an empty reply`},
		{200, "application/json", `{"a":`, 100, `reply cut off (HTTP status 200): HOST sent 5 bytes of ` +
			`application/json, which begin with "{\"a\":"`},
		{502, "text/html", page, 0, `server error (HTTP status 502): HOST sent 38 bytes of text/html, which begin`},
		{503, "", "", 0, `server error (HTTP status 503): HOST sent an empty reply`},
		{404, "text/plain", "404 page not found", 0, `bad request (HTTP status 404): 404 page not found: nothing is ` +
			`at http://HOST; does the address of the server end with /v1?`},
		{503, "text/plain", "no upstream", 0, `server error (HTTP status 503): no upstream`},
	} {
		t.Run(fmt.Sprintf("%.60s", c.body), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Content-Length", strconv.Itoa(len(c.body)+c.cut))
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			client, err := New(Options{
				Name: "openai", BaseURL: server.URL, Key: llm.NewSecret("sk-secret"), KeyHeader: "Authorization",
			})
			if err != nil {
				t.Fatal(err)
			}
			var into struct{}
			_, err = client.Do(t.Context(), Call{
				Method: http.MethodPost, Model: "m", Once: true,
				Read: func(body io.Reader) error { return ReadJSON(body, &into) },
			})
			want := `openai: cannot ask model "m": ` + strings.ReplaceAll(c.want, "HOST", client.host.Host)
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "sk-secret") {
				t.Errorf("%d %s %.20q: got %v, want %s", c.status, c.kind, c.body, err, want)
			}
			_ = client.Close()
			server.Close()
		})
	}
}

func FuzzFailure(f *testing.F) {
	f.Add(`{"error":{"message":"m","type":"t","code":null}}`)
	f.Add(`{"error":[1],"code":{"a":1},"detail":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		got := ParseFailure([]byte(text))
		if _, known := kind.Find(got.Kind.Error()); !known {
			t.Errorf("got %+v", got)
		}
	})
}

func TestUsageAddsUpWithoutOverflow(t *testing.T) {
	a := llm.Usage{
		InputTokens: math.MaxInt64, OutputTokens: 1, CachedTokens: 2,
		CacheWriteTokens: 3, ReasoningTokens: 1,
	}
	b := llm.Usage{
		InputTokens: 5, OutputTokens: 2, CachedTokens: 3, CacheWriteTokens: 4,
		ReasoningTokens: 2, Estimated: true,
	}
	want := llm.Usage{
		InputTokens: math.MaxInt64, OutputTokens: 3, CachedTokens: 5,
		CacheWriteTokens: 7, ReasoningTokens: 3, Estimated: true,
	}
	if got := addUsage(a, b); got != want {
		t.Errorf("got %+v", got)
	}
}
