package providers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// formats are providers, one for each wire format.
var formats = []string{"openai", "anthropic", "azure", "ollama"}

// quick makes retries wait for milliseconds.
var quick = providers.HTTP{FirstWait: time.Millisecond}

// setUp starts a server and resolves one of its models.
func setUp(
	t *testing.T, format string, config providers.HTTP, answer llm.Func,
) (*llmtest.Server, llm.Model) {
	t.Helper()
	server := llmtest.Start(answer)
	t.Cleanup(server.Close)
	registry, err := providers.New(providers.Options{Env: server.Env, HTTP: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	model, err := registry.Resolve(format + "/any")
	if err != nil {
		t.Fatal(err)
	}

	return server, model
}

// each runs a test for each format, streamed and whole. The test makes its calls with the caller
// that it receives.
func each(
	t *testing.T, config providers.HTTP, answer llm.Func, test func(s *llmtest.Server, c caller),
) {
	t.Helper()
	for _, format := range formats {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", format, streamed), func(t *testing.T) {
				server, model := setUp(t, format, config, answer)
				test(server, caller{T: t, model: model, format: format, streamed: streamed})
			})
		}
	}
}

// caller makes calls in one format, streamed or whole.
type caller struct {
	*testing.T
	model    llm.Model
	format   string
	streamed bool
}

// ask makes a call. It returns the response and the streamed text.
func (c caller) ask(ctx context.Context, r llm.Request) (llm.Response, string, error) {
	r.Model = c.model.ID
	if r.Messages == nil {
		r.Messages = []llm.Message{{Role: llm.RoleUser, Content: "hello"}}
	}
	if !c.streamed {
		response, err := c.model.Provider.Complete(ctx, r, nil)
		return response, response.Text, err
	}

	var got strings.Builder
	response, err := c.model.Provider.Complete(ctx, r,
		func(piece string) { got.WriteString(piece) })
	return response, got.String(), err
}

// reply answers every request with text.
func reply(text string) llm.Func {
	return func(llm.Request) (llm.Response, error) {
		return llm.Response{Text: text, Usage: llm.Usage{
			InputTokens: 100, OutputTokens: 20, CachedTokens: 30, CacheWriteTokens: 10,
			ReasoningTokens: 5,
		}}, nil
	}
}

const long = "The quick brown fox jumps over the lazy dog, again and again, as foxes do. 狐狸。"

func TestARequestArrivesWholeAndTheReplyToo(t *testing.T) {
	var last atomic.Pointer[llm.Request]
	answer := func(r llm.Request) (llm.Response, error) { last.Store(&r); return reply(long)(r) }
	each(t, quick, answer, func(s *llmtest.Server, c caller) {
		t := c.T
		half, seed := 0.5, int64(7)
		const extra = `"chat_template_kwargs":{"enable_thinking":false}`
		sent := llm.Request{
			Messages: []llm.Message{
				{Role: llm.RoleSystem, Content: "Be brief. </script> \u2028"},
				{Role: llm.RoleUser, Content: "first"},
				{Role: llm.RoleAssistant, Content: ""},
				{Role: llm.RoleUser, Content: "second\x00", Images: []llm.Image{
					{Type: "image/png", Data: []byte("\x89PNG and so on")},
					{Type: "image/jpeg", Data: []byte("\xff\xd8\xff")},
				}},
			},
			MaxTokens: 77, Stop: []string{"END"},
			Sampling: llm.Sampling{
				Temperature: &half, TopP: &half, Seed: &seed, ReasoningEffort: "low",
				ExtraBody: json.RawMessage(" { " + extra + " } "),
			},
			Metadata: llm.Metadata{Purpose: "secret-purpose"},
		}
		response, streamed, err := c.ask(t.Context(), sent)
		if err != nil {
			t.Fatal(err)
		}
		want := llm.Usage{
			InputTokens: 100, OutputTokens: 20, CachedTokens: 30,
			CacheWriteTokens: 10, ReasoningTokens: 5,
		}
		if response.Text != long || streamed != long || response.Usage != want ||
			response.Finish != llm.FinishStop ||
			response.Model != "any" || response.Attempts != 1 {
			t.Errorf("got %+v, streamed %q", response, streamed)
		}

		got := last.Load()
		if c.format == "anthropic" {
			sent.Messages[2].Content = "(no text)"
		}

		if fmt.Sprint(got.Messages) != fmt.Sprint(sent.Messages) || got.MaxTokens != 77 ||
			*got.Temperature != 0.5 || got.Stop[0] != "END" {
			t.Errorf("the server got %+v", got)
		}

		if *got.TopP != 0.5 || got.ReasoningEffort != "low" || !strings.Contains(s.Seen()[0].Body, extra) ||
			c.format != "anthropic" && *got.Seed != 7 {
			t.Errorf("the server got %s", s.Seen()[0].Body)
		}

		if strings.Contains(s.Seen()[0].Body, "secret-purpose") {
			t.Error("the metadata was sent")
		}
	})
}

func TestFailuresHaveKinds(t *testing.T) {
	status := llmtest.Status
	const badKey = "Incorrect API key provided: " + llmtest.Key
	const longAgo = "Thu, 01 Jan 1970 00:00:00 GMT"
	for _, c := range []struct {
		name  string
		fault llmtest.Fault
		kind  error
		again bool // whether the request is made again
	}{
		{"401", status(401, "invalid_api_key", badKey, ""), kind.ErrAuth, false},
		{"402", status(402, "", "pay", ""), kind.ErrQuota, false},
		{"403", status(403, "permission_error", "not yours", ""), kind.ErrAuth, false},
		{"404", status(404, "not_found_error", "model: any", ""), kind.ErrUnknownModel, false},
		{"404 of a path", status(404, "", "no such page", ""), kind.ErrBadRequest, false},
		{"408", status(408, "", "", ""), kind.ErrTimeout, true},
		{"409", status(409, "", "locked", ""), kind.ErrServer, true},
		{"413", status(413, "request_too_large", "too big", ""), kind.ErrContextLength, false},
		{"429", status(429, "rate_limit_exceeded", "slow down", ""), kind.ErrRateLimited, true},
		{"429 without credit", status(429, "insufficient_quota", "no money", ""), kind.ErrQuota, false},
		{"429 with a long wait", status(429, "", "later", "86400"), kind.ErrRateLimited, false},
		{"500", status(500, "server_error", "oops", ""), kind.ErrServer, true},
		{"501", status(501, "", "not implemented", ""), kind.ErrBadRequest, false},
		{"503", status(503, "", "away", longAgo), kind.ErrServer, true},
		{"529", status(529, "overloaded_error", "busy", ""), kind.ErrServer, true},
		{
			"context length", status(400, "context_length_exceeded", "too long", ""),
			kind.ErrContextLength, false,
		},
		{
			"context length of vLLM",
			status(400, "", "This model's maximum context length is 4096 tokens", ""),
			kind.ErrContextLength, false,
		},
		{
			"context length of Claude",
			status(400, "invalid_request_error", "prompt is too long: 5 tokens > 4 maximum", ""),
			kind.ErrContextLength, false,
		},
		{
			"context length of a new vLLM",
			status(400, "", "The decoder prompt (length 9000) is longer than the maximum model length of 8192.", ""),
			kind.ErrContextLength, false,
		},
		{
			"context length of llama.cpp",
			status(400, "exceed_context_size_error", "request (9031 tokens) exceeds the available context size", ""),
			kind.ErrContextLength, false,
		},
		{
			"context length of an old llama.cpp",
			status(500, "server_error", "the request exceeds the available context size. try increasing it", ""),
			kind.ErrContextLength, false,
		},
		{
			"context length of Ollama", status(400, "", "the input length exceeds the context length", ""),
			kind.ErrContextLength, false,
		},
		{
			"context length of OpenRouter",
			status(400, "", "This endpoint's maximum context length is 16384 tokens. However, you requested", ""),
			kind.ErrContextLength, false,
		},
		{
			"context length of Gemini",
			status(400, "", "The input token count (9) exceeds the maximum number of tokens allowed (8).", ""),
			kind.ErrContextLength, false,
		},
		{"filter", status(400, "content_filter", "filtered", ""), kind.ErrRefused, false},
		{"400", status(400, "invalid_request_error", "stop: too many", ""), kind.ErrBadRequest, false},
		{"cut before anything", llmtest.Cut(0), kind.ErrCut, true},
		{"cut in a number", llmtest.Cut(10), kind.ErrCut, true},
		{"ended too early", llmtest.End(20), kind.ErrCut, true},
		{"not JSON", llmtest.Replace(`"`, `'`), kind.ErrMalformed, true},
		{"other JSON", llmtest.Body("application/json", `[1, 2]`), nil, true},
		{"a page", llmtest.Body("text/html", "<html>Log in</html>"), nil, true},
		{"huge", llmtest.Huge(3 << 20), kind.ErrTooLarge, false},
		{
			"redirect elsewhere", llmtest.Redirect(307, "http://127.0.0.1:1/steal"),
			kind.ErrRedirect, false,
		},
		{
			"redirect to another scheme", llmtest.Redirect(308, "ftp://host/steal"),
			kind.ErrRedirect, false,
		},
		{
			"redirect that drops the body", llmtest.Redirect(302, "/v1/chat/completions"),
			kind.ErrRedirect, false,
		},
		{"redirect without end", llmtest.Redirect(307, "/v1/messages"), kind.ErrRedirect, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := providers.HTTP{
				FirstWait: time.Millisecond, Attempts: 2, Outage: 5 * time.Millisecond,
				MaxResponse: 1 << 20,
			}
			each(t, config, reply(long), func(s *llmtest.Server, call caller) {
				t := call.T
				c := c
				if c.name == "redirect without end" {
					c.fault = llmtest.Redirect(307, map[string]string{
						"anthropic": "/v1/messages", "azure": "/openai/v1/chat/completions",
					}[call.format])
					if call.format != "anthropic" && call.format != "azure" {
						c.fault = llmtest.Redirect(307, "/v1/chat/completions")
					}
				}

				c.fault.Times = -1
				s.Fail(c.fault)
				_, streamed, err := call.ask(t.Context(), llm.Request{})
				var failure *llm.Error
				if !errors.As(err, &failure) {
					t.Fatalf("got %v", err)
				}
				if c.kind == nil {
					if !errors.Is(err, kind.ErrMalformed) && !errors.Is(err, kind.ErrCut) {
						t.Errorf("got %v", failure)
					}
					return
				}

				if !errors.Is(err, c.kind) || failure.Attempts > 1 != c.again {
					t.Errorf("got %v after %d attempts, streamed %q", failure, failure.Attempts,
						streamed)
				}

				if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, failure), llmtest.Key) {
					t.Errorf("the error holds the key: %+v", failure)
				}
			})
		})
	}
}

func TestTransientFailuresAreRetried(t *testing.T) {
	for name, fault := range map[string]llmtest.Fault{
		"429": llmtest.Status(429, "rate_limit_error", "slow down", "0"), "500": llmtest.Status(500,
			"", "", ""),
		"cut": llmtest.Cut(5),
	} {
		t.Run(name, func(t *testing.T) {
			each(t, quick, reply(long), func(s *llmtest.Server, c caller) {
				t := c.T
				fault.Times = 2
				s.Fail(fault)
				response, streamed, err := c.ask(t.Context(), llm.Request{})
				if err != nil || response.Attempts != 3 || response.Text != long ||
					streamed != long {
					t.Errorf("got %+v, %v, streamed %q", response, err, streamed)
				}
			})
		})
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	for name, value := range map[string]string{
		"seconds": "1", "date": time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var waited atomic.Int64
			config := providers.HTTP{Wait: func(err *llm.Error, pause time.Duration) {
				if !errors.Is(err, kind.ErrRateLimited) || pause < err.RetryAfter {
					t.Errorf("waits %s for %v, which asks for %s", pause, err, err.RetryAfter)
				}
				waited.Add(int64(err.RetryAfter))
			}}
			server, model := setUp(t, "openai", config, reply("x"))
			server.Fail(llmtest.Status(429, "", "", value))

			if _, _, err := (caller{model: model}).ask(t.Context(), llm.Request{}); err != nil ||
				waited.Load() == 0 {
				t.Errorf("got %v after waiting %d", err, waited.Load())
			}
		})
	}
}

func TestAWaitBeyondTheDeadlineDoesNotBegin(t *testing.T) {
	server, model := setUp(t, "openai", providers.HTTP{MaxWait: time.Hour}, reply("x"))
	server.Fail(llmtest.Status(429, "", "", "600"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	_, _, err := caller{model: model}.ask(ctx, llm.Request{})
	if !errors.Is(err, kind.ErrRateLimited) || ctx.Err() != nil {
		t.Errorf("got %v", err)
	}
}

func TestAStreamThatBrokeAfterItsFirstPieceStartsAgain(t *testing.T) {
	for name, fault := range map[string]llmtest.Fault{
		"cut": llmtest.Cut(900), "error": llmtest.StreamError(6, "overloaded_error", "busy"),
	} {
		t.Run(name, func(t *testing.T) {
			each(t, quick, reply(long+long+long), func(s *llmtest.Server, c caller) {
				t := c.T
				if !c.streamed {
					t.Skip("a whole reply has no pieces")
				}
				s.Fail(fault)
				var pieces []string
				response, err := c.model.Provider.Complete(t.Context(), llm.Request{
					Model: c.model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: "q"}},
				}, func(piece string) { pieces = append(pieces, piece) })
				again := slices.Index(pieces, "")
				if err != nil || again < 1 || response.Attempts != 2 {
					t.Fatalf("got %+v, %v, streamed %q", response, err, pieces)
				}
				whole := long + long + long
				if first := strings.Join(pieces[:again], ""); !strings.HasPrefix(whole, first) ||
					strings.Join(pieces[again:], "") != whole {
					t.Errorf("streamed %q", pieces)
				}
				if !response.Usage.Estimated || response.Usage.InputTokens <= 100 ||
					response.Usage.OutputTokens <= 20 {
					t.Errorf("the broken stream is not counted: %+v", response.Usage)
				}
			})
		})
	}
}

func TestAStreamThatFailsBeforeItsFirstPieceIsAskedForAgain(t *testing.T) {
	each(t, quick, reply(long), func(s *llmtest.Server, c caller) {
		t := c.T
		s.Fail(llmtest.StreamError(0, "overloaded_error", "busy"))
		response, streamed, err := c.ask(t.Context(), llm.Request{})
		if err != nil || streamed != long || c.streamed && response.Attempts != 2 {
			t.Errorf("got %+v, %v, streamed %q", response, err, streamed)
		}
	})
}

func TestSlownessEndsByTheTimeout(t *testing.T) {
	for name, fault := range map[string]llmtest.Fault{
		"first byte": llmtest.Slow(time.Hour),
		"later":      llmtest.Stall(5),
	} {
		t.Run(name, func(t *testing.T) {
			var again atomic.Int64 // a busy server might not receive a request in time
			config := providers.HTTP{
				Timeout: 50 * time.Millisecond, FirstWait: time.Millisecond,
				Attempts: 2, Wait: func(*llm.Error, time.Duration) { again.Add(1) },
			}
			each(t, config, reply(long), func(s *llmtest.Server, c caller) {
				again.Store(0)
				t := c.T
				fault.Times = -1
				s.Fail(fault)
				_, _, err := c.ask(t.Context(), llm.Request{})
				if !errors.Is(err, kind.ErrTimeout) || again.Load() != 1 || len(s.Seen()) > 2 {
					t.Errorf("got %v after %d pauses and %d requests", err, again.Load(), len(s.Seen()))
				}
			})
		})
	}
}

func TestACancelledContextEndsACallWithItsCause(t *testing.T) {
	stop := errors.New("the user pressed a key")
	for name, fault := range map[string]llmtest.Fault{
		"while waiting for a byte": llmtest.Slow(time.Hour),
		"while reading":            llmtest.Stall(5),
		"while pausing":            llmtest.Status(429, "", "", "50"),
	} {
		t.Run(name, func(t *testing.T) {
			paused := make(chan struct{}, 1)
			config := providers.HTTP{Wait: func(*llm.Error, time.Duration) { paused <- struct{}{} }}
			each(t, config, reply(long), func(s *llmtest.Server, c caller) {
				t := c.T
				ctx, cancel := context.WithCancelCause(t.Context())
				fault.Times = -1
				s.Fail(fault)
				go func() {
					if name == "while pausing" {
						<-paused
					}
					for len(s.Seen()) == 0 {
						time.Sleep(time.Millisecond)
					}
					cancel(stop)
				}()

				if _, _, err := c.ask(ctx, llm.Request{}); !errors.Is(err, stop) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestAUsageThatCannotBeIsReplacedByAnEstimate(t *testing.T) {
	for _, raw := range []string{
		`null`, `{}`, `"many"`,
		`{"prompt_tokens":-5,"completion_tokens":3,"input_tokens":-5,"output_tokens":3}`,
		`{"prompt_tokens":9223372036854775807,"completion_tokens":1,` +
			`"input_tokens":9223372036854775807,"output_tokens":1}`,
		`{"prompt_tokens":1e99,"input_tokens":1e99}`, `{"prompt_tokens":"12","input_tokens":"12"}`,
		`{"prompt_tokens":5,"completion_tokens":0,"input_tokens":5,"output_tokens":0}`,
		`{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":6},` +
			`"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":-6}`,
	} {
		t.Run(raw, func(t *testing.T) {
			each(t, quick, reply(long), func(s *llmtest.Server, c caller) {
				t := c.T
				s.Fail(llmtest.Usage(raw))
				request := llm.Request{
					Model:    "any",
					Messages: []llm.Message{{Role: llm.RoleUser, Content: "hello"}},
				}
				response, _, err := c.ask(t.Context(), request)
				if err != nil || response.Text != long ||
					response.Usage != usage.Or(llm.Usage{}, request, long) {
					t.Errorf("got %+v, %v", response, err)
				}
			})
		})
	}
}

func TestARefusalIsAnAnswer(t *testing.T) {
	answer := func(llm.Request) (llm.Response, error) {
		return llm.Response{Text: "I will not.", Finish: llm.FinishRefusal}, nil
	}
	each(t, quick, answer, func(_ *llmtest.Server, c caller) {
		t := c.T
		response, _, err := c.ask(t.Context(),
			llm.Request{Schema: json.RawMessage(`{"type":"boolean"}`)})
		if err != nil || response.Finish != llm.FinishRefusal || response.Text != "I will not." {
			t.Errorf("got %+v, %v", response, err)
		}
	})
}

func TestALengthLimitIsReported(t *testing.T) {
	answer := func(llm.Request) (llm.Response, error) {
		return llm.Response{Text: "half a", Finish: llm.FinishLength}, nil
	}
	each(t, quick, answer, func(_ *llmtest.Server, c caller) {
		t := c.T
		if response, _, err := c.ask(t.Context(), llm.Request{}); err != nil ||
			response.Finish != llm.FinishLength {
			t.Errorf("got %+v, %v", response, err)
		}
	})
}

func TestABrokenReplyIsCountedToo(t *testing.T) {
	each(t, quick, reply(long), func(s *llmtest.Server, c caller) {
		t := c.T
		s.Fail(llmtest.Cut(10))
		request := llm.Request{
			Model:    "any",
			Messages: []llm.Message{{Role: llm.RoleUser, Content: "hello"}},
		}
		response, _, err := c.ask(t.Context(), request)
		want := 100 + usage.EstimateInput(request)
		if err != nil || response.Attempts != 2 || response.Usage.InputTokens != want ||
			!response.Usage.Estimated {
			t.Errorf("got %+v, %v", response, err)
		}
	})
}
