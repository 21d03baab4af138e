package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASecretNeverPrints(t *testing.T) {
	const value = "sk-very-secret"
	type config struct {
		Public llm.Secret
		hidden llm.Secret
		list   []llm.Secret
		inner  *struct{ key llm.Secret }
	}

	s := llm.NewSecret(" " + value + "\n")
	c := config{Public: s, hidden: s, list: []llm.Secret{s}, inner: &struct{ key llm.Secret }{s}}
	encoded, err := json.Marshal(map[string]any{"a": s, "b": c})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	all.Write(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%p"} {
		fmt.Fprintf(&all, verb+verb+verb+verb, s, c, &c, c.inner)
	}

	if text := all.String(); strings.Contains(text, value) ||
		strings.Contains(text, fmt.Sprintf("%x", value)) {
		t.Errorf("printed: %s", text)
	}

	if s.Reveal() != value {
		t.Errorf("the secret is %q", s.Reveal())
	}

	if none := llm.NewSecret(" "); none.Reveal() != "" ||
		fmt.Sprint(none) != "" {
		t.Error("an empty secret has a value")
	}
}

func TestRequestsThatNoServerCanAnswerAreRefused(t *testing.T) {
	user := []llm.Message{{Role: llm.RoleUser, Content: "x"}}
	for name, r := range map[string]llm.Request{
		"nothing said": {}, "only a system": {Messages: []llm.Message{{Role: llm.RoleSystem}}},
		"a role":   {Messages: []llm.Message{{Role: "tool"}}},
		"a limit":  {Messages: user, MaxTokens: -1},
		"a schema": {Messages: user, Schema: json.RawMessage("{")},
	} {
		t.Run(name, func(t *testing.T) {
			p := llm.Func(func(llm.Request) (llm.Response, error) {
				t.Error("asked")
				return llm.Response{}, nil
			})
			if _, err := p.Complete(t.Context(), r, nil); !errors.Is(err, kind.ErrBadRequest) {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
}

func TestAFunctionIsAProvider(t *testing.T) {
	p := llm.Func(func(r llm.Request) (llm.Response, error) {
		return llm.Response{Text: r.Messages[0].Content + "!"}, nil
	})
	r := llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: "hi"}}}
	var streamed string
	got, err := p.Complete(t.Context(), r, func(s string) { streamed += s })
	want := llm.Response{
		Text: "hi!", Model: "m", Finish: llm.FinishStop,
		Usage: usage.Or(llm.Usage{}, r, "hi!"),
	}
	if err != nil || got != want || streamed != "hi!" || !got.Usage.Estimated {
		t.Errorf("got %+v, %v, streamed %q", got, err, streamed)
	}
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := p.Complete(ctx, r, nil); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if err := llm.Check(t.Context(), p, "m"); err != nil {
		t.Error(err)
	}
}

func TestErrorsSayWhoWhatAndWhy(t *testing.T) {
	err := error(&llm.Error{
		Kind: llm.ErrRateLimited, Provider: "openai", Model: "m", Status: 429,
		Message: "slow down", Attempts: 5,
	})
	const want = `openai: cannot ask model "m": rate limited (HTTP status 429): slow down ` +
		`(after 5 attempts)`
	if err.Error() != want || !errors.Is(err, llm.ErrRateLimited) || errors.Is(err, llm.ErrServer) {
		t.Errorf("got %v", err)
	}
	inner := &llm.Error{Kind: kind.ErrCut, Err: context.Canceled}
	if !errors.Is(inner, context.Canceled) {
		t.Error("the cause is lost")
	}
}
