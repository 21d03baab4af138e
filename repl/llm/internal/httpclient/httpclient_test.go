package httpclient

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/repl/llm"
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
		{"Fri, 02 Jan 9026 03:04:00 GMT", "", longest},
		{"9223372036854775807", "", longest},
		{"99999999999999999999999999", "", longest},
		{"", "9223372036854775807", longest},
	} {
		header := http.Header{}
		header.Set("Retry-After", c.header)
		header.Set("Retry-After-Ms", c.ms)
		if got := retryAfter(header, now); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.header, c.ms, got, c.want)
		}
	}
}

func TestPausesGrowWithinBounds(t *testing.T) {
	c, err := New(Config{BaseURL: "http://localhost", HTTP: llm.HTTP{FirstWait: time.Second, MaxWait: 10 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	for attempt, mean := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 5: 10 * time.Second, 500: 10 * time.Second} {
		for range 100 {
			pause, ok := c.pause(&llm.Error{}, attempt)
			if !ok || pause < mean/2 || pause > min(mean*3/2, 10*time.Second) {
				t.Fatalf("attempt %d: %s", attempt, pause)
			}
		}
	}
	if _, ok := c.pause(&llm.Error{RetryAfter: 11 * time.Second}, 1); ok {
		t.Error("a pause beyond the bound is made")
	}
	if pause, ok := c.pause(&llm.Error{RetryAfter: 10 * time.Second}, 1); !ok || pause < 10*time.Second || pause > 11*time.Second {
		t.Errorf("got %s", pause)
	}
}

func TestAServersWordsAreCleaned(t *testing.T) {
	c := &Client{Config: Config{Key: llm.NewSecret("sk-key")}}
	for text, want := range map[string]string{
		"bad key sk-key, sk-key!":          "bad key [hidden], [hidden]!",
		"\x1b[31mred\x1b[0m\r\nline\u202e": "[31mred[0m  line",
		strings.Repeat("é", 600):           strings.Repeat("é", 500) + "…",
		"\xff":                             "\ufffd",
		"s\x00k-\u200bkey":                 "[hidden]",
	} {
		if got := c.clean(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestFailuresAreReadInEveryDialect(t *testing.T) {
	for text, want := range map[string]llm.Error{
		`{"error":{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}}`: {Kind: llm.ErrContextLength, Message: "m"},
		`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`:                        {Kind: llm.ErrServer, Message: "m"},
		`{"object":"error","message":"m","type":"BadRequestError","code":400}`:                      {Kind: llm.ErrBadRequest, Message: "m"},
		`{"error":{"message":"m","code":429}}`:                                                      {Kind: llm.ErrRateLimited, Message: "m"},
		`{"error":"m"}`:                                                                             {Kind: llm.ErrServer, Message: "m"},
		`{"detail":"m"}`:                                                                            {Kind: llm.ErrServer, Message: "m"},
		`{"error":{"message":"Your credit balance is too low","type":"invalid_request_error"}}`:     {Kind: llm.ErrQuota, Message: "Your credit balance is too low"},
		`[]`:    {Kind: llm.ErrServer},
		`<html`: {Kind: llm.ErrServer},
	} {
		if got := Failure([]byte(text)); *got != want {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

func TestABodyIsReadToItsBoundAndNoFurther(t *testing.T) {
	for size, want := range map[int]error{9: nil, 10: nil, 11: errTooLarge, 5000: errTooLarge} {
		b := &bounded{r: strings.NewReader(strings.Repeat("x", size)), left: 10}
		text, err := io.ReadAll(b)
		if !errors.Is(err, want) || len(text) > 10 || want == nil && len(text) != size {
			t.Errorf("%d bytes: got %d, %v", size, len(text), err)
		}
	}
}

func TestHabitsStayBounded(t *testing.T) {
	var h Habits
	for i := range 3 * maxHabits {
		h.remember(strings.Repeat("x", i%7) + string(rune(i)))
		if len(h.lacks) > maxHabits {
			t.Fatalf("%d are remembered", len(h.lacks))
		}
	}
}

func FuzzFailure(f *testing.F) {
	f.Add(`{"error":{"message":"m","type":"t","code":null}}`)
	f.Add(`{"error":[1],"code":{"a":1},"detail":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if got := Failure([]byte(text)); !got.Kind.Known() {
			t.Errorf("got %+v", got)
		}
	})
}
