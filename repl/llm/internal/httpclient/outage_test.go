package httpclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// fakeServer answers with a function of the time since the test began.
type fakeServer func(since time.Duration, r *http.Request) (*http.Response, error)

// client returns a client of the server. It must be used in a synctest bubble, where time passes
// instantly.
func (f fakeServer) client(t *testing.T, p HTTP) *Client {
	t.Helper()
	begun := time.Now()
	p.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		return f(time.Since(begun), r)
	})
	c, err := New(Options{Name: "p", BaseURL: "http://localhost", HTTP: p})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// reply returns a response with a status, a body and header pairs.
func reply(status int, text string, header ...string) (*http.Response, error) {
	r := &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)),
	}
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	return r, nil
}

// refuse returns the error of a closed port.
func refuse() (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

// waits collects the waits of calls.
type waits struct {
	mu  sync.Mutex
	all []callnotes.Wait
}

func (w *waits) NoteWait(wait callnotes.Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, wait)
}

func (w *waits) NoteDropped(string) {}

func (w *waits) NoteAsked(callnotes.Asked) {}

// call makes a call that costs ten tokens once its reply has begun.
func call(ctx context.Context, c *Client) (Outcome, error) {
	var out any
	return c.Do(ctx, Call{
		Method: http.MethodPost, Model: "m", EstimateInput: func() int64 { return 10 },
		Read: func(body io.Reader) error { return ReadJSON(body, &out) },
	})
}

func TestACallSurvivesAnOutage(t *testing.T) {
	for name, away := range map[string]func() (*http.Response, error){
		"503":           func() (*http.Response, error) { return reply(503, `{"error":"Loading model"}`) },
		"500":           func() (*http.Response, error) { return reply(500, "") },
		"429":           func() (*http.Response, error) { return reply(429, "") },
		"closed port":   refuse,
		"proxy":         func() (*http.Response, error) { return nil, io.EOF },
		"asks for more": func() (*http.Response, error) { return reply(503, "", "Retry-After", "70") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const begin, end = time.Second, 4 * time.Minute
				c := fakeServer(func(since time.Duration, _ *http.Request) (*http.Response, error) {
					if since >= begin && since < end {
						return away()
					}
					return reply(200, `1`)
				}).client(t, HTTP{})
				if _, err := call(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				time.Sleep(begin)

				told := &waits{}
				start := time.Now()
				done, err := call(callnotes.With(t.Context(), told), c)
				if took := time.Since(start); err != nil || took < end-begin || took > 5*time.Minute {
					t.Fatalf("got %v after %v", err, took)
				}
				if done.wasted != (llm.Usage{}) || done.Attempts != len(told.all)+1 {
					t.Errorf("%+v, %d waits are told", done, len(told.all))
				}
				last := told.all[len(told.all)-1]
				if last.Limit != 5*time.Minute || last.Waited < 2*time.Minute || last.Reason == "" {
					t.Errorf("the last wait is told as %+v", last)
				}
			})
		})
	}
}

func TestACallIsGivenUpWithTheReason(t *testing.T) {
	for _, c := range []struct {
		name   string
		server fakeServer
		policy HTTP
		after  time.Duration // at least this long; at most five seconds longer
		calls  int           // 0 for any number
		reason string
	}{
		{
			"away for good",
			func(time.Duration, *http.Request) (*http.Response, error) { return reply(503, "") },
			HTTP{},
			5 * time.Minute, 0, "given up after 5m0s: raise --outage",
		},
		{
			"a short patience",
			func(time.Duration, *http.Request) (*http.Response, error) { return reply(503, "") },
			HTTP{Outage: 20 * time.Second},
			20 * time.Second, 0, "given up after 20s",
		},
		{
			"no patience",
			func(time.Duration, *http.Request) (*http.Response, error) { return reply(503, "away") },
			HTTP{Outage: -1},
			0, 1, "away",
		},
		{
			"nothing ever answered",
			func(time.Duration, *http.Request) (*http.Response, error) { return refuse() },
			HTTP{},
			10 * time.Second, 0, "refused: given up after 10s: check the address",
		},
		{
			"a pause that is too long",
			func(time.Duration, *http.Request) (*http.Response, error) {
				return reply(429, "slow down", "Retry-After", "600")
			},
			HTTP{},
			0, 1, "slow down: the server asks to wait 10m0s, but the run waits at most 5m0s",
		},
		{
			"a pause that is too long after another one",
			func(time.Duration, *http.Request) (*http.Response, error) {
				return reply(429, "slow down", "Retry-After", "200")
			},
			HTTP{},
			200 * time.Second, 2, "the server asks to wait 3m20s more, but the run has waited 3m2",
		},
		{
			"never JSON",
			func(time.Duration, *http.Request) (*http.Response, error) { return reply(200, "<html>") },
			HTTP{FirstWait: time.Millisecond},
			0, 5, "malformed reply",
		},
		{
			"always too late",
			func(_ time.Duration, r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			},
			HTTP{Timeout: time.Second, Attempts: 3, FirstWait: time.Millisecond},
			3 * time.Second, 3, "waited 1s",
		},
		{
			"500 for one request, while others are answered",
			func(time.Duration, *http.Request) (*http.Response, error) {
				return reply(500, "the grammar has a bug")
			},
			HTTP{FirstWait: time.Millisecond},
			0, 5, "the grammar has a bug",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				var client *Client
				client = fakeServer(func(since time.Duration, r *http.Request) (*http.Response, error) {
					calls++
					if strings.HasPrefix(c.name, "500") { // another call succeeds
						client.contact.success.Store(time.Now().Add(time.Nanosecond).UnixNano())
					}
					return c.server(since, r)
				}).client(t, c.policy)

				start := time.Now()
				_, err := call(t.Context(), client)
				took := time.Since(start)
				if err == nil || !strings.Contains(err.Error(), c.reason) {
					t.Errorf("got %v", err)
				}
				if took < c.after || took > c.after+5*time.Second || c.calls > 0 && calls != c.calls {
					t.Errorf("%d calls, and it took %v", calls, took)
				}
			})
		})
	}
}

func TestOneBadReplyIsAskedForAgain(t *testing.T) {
	for name, text := range map[string]string{"not JSON": `{'`, "a page": "<html>", "cut": `{"a":`} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			c := fakeServer(func(time.Duration, *http.Request) (*http.Response, error) {
				if calls++; calls == 1 {
					return reply(200, text)
				}
				return reply(200, "1")
			}).client(t, HTTP{})
			done, err := call(t.Context(), c)
			if err != nil || done.Attempts != 2 || done.wasted.InputTokens != 10 {
				t.Errorf("%s: got %+v, %v", name, done, err)
			}
		})
	}
}

func TestTheTimeOfTheRunBoundsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for asked, reason := range map[string]string{
			"":   "the time of the run ends before the next attempt",
			"60": "the server asks to wait 1m0s, which is beyond the time of the run",
		} {
			c := fakeServer(func(time.Duration, *http.Request) (*http.Response, error) {
				return reply(503, "", "Retry-After", asked)
			}).client(t, HTTP{})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			_, err := call(ctx, c)
			if !errors.Is(err, kind.ErrServer) || !strings.Contains(err.Error(), reason) || ctx.Err() != nil {
				t.Errorf("got %v", err)
			}
			cancel()
		}
	})
}

func TestAnInterruptEndsTheWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeServer(func(time.Duration, *http.Request) (*http.Response, error) {
			return reply(503, "")
		}).client(t, HTTP{})
		stop := errors.New("the user pressed a key")
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(time.Minute, func() { cancel(stop) })
		if _, err := call(ctx, c); !errors.Is(err, stop) || time.Since(start) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// TestAServerMayComeUpWhileARunBegins checks calls to a server that is still starting; llama.cpp
// answers 503 while it loads a model.
func TestAServerMayComeUpWhileARunBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeServer(func(since time.Duration, _ *http.Request) (*http.Response, error) {
			switch {
			case since < 5*time.Second:
				return refuse()
			case since < time.Minute:
				return reply(503, `{"error":{"message":"Loading model","code":503}}`)
			}
			return reply(200, `{"data":[]}`)
		}).client(t, HTTP{})
		told := &waits{}
		var list map[string]any
		err := c.Fetch(callnotes.With(t.Context(), told), Call{Path: "/models"}, &list)
		if err != nil || list["data"] == nil {
			t.Errorf("got %v, %v", list, err)
		}
		if first, last := told.all[0], told.all[len(told.all)-1]; first.Limit != firstContact ||
			last.Limit != 5*time.Minute || last.Reason != "server error (HTTP status 503): Loading model" {
			t.Errorf("told of %+v and %+v", first, last)
		}
	})
}
