package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/repl/llm"
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
	if text := all.String(); strings.Contains(text, value) || strings.Contains(text, fmt.Sprintf("%x", value)) {
		t.Errorf("printed: %s", text)
	}
	if s.Reveal() != value || s.Remove("a "+value+" b") != "a [hidden] b" || s.IsZero() {
		t.Errorf("the secret is %q", s.Reveal())
	}
	var read struct{ Key llm.Secret }
	if err := json.Unmarshal([]byte(`{"Key":"k"}`), &read); err != nil || read.Key.Reveal() != "k" {
		t.Errorf("read %q, %v", read.Key.Reveal(), err)
	}
	if none := llm.NewSecret(" "); !none.IsZero() || none.Reveal() != "" || none.Remove("x") != "x" || fmt.Sprint(none) != "" {
		t.Error("no key is a key")
	}
}

func TestUsageAddsUpWithoutOverflow(t *testing.T) {
	a := llm.Usage{InputTokens: math.MaxInt64, OutputTokens: 1, CachedTokens: 2, CacheWriteTokens: 3, ReasoningTokens: 1}
	b := llm.Usage{InputTokens: 5, OutputTokens: 2, CachedTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 2, Estimated: true}
	want := llm.Usage{InputTokens: math.MaxInt64, OutputTokens: 3, CachedTokens: 5, CacheWriteTokens: 7, ReasoningTokens: 3, Estimated: true}
	if got := a.Add(b); got != want {
		t.Errorf("got %+v", got)
	}
}

func TestTokensAreEstimatedForEveryScript(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "abcd": 1, "abcde": 2, "狐狸": 2, "ab狐": 2, "\xff\xff": 2} {
		if got := llm.EstimateTokens(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}

func TestRequestsThatNoServerCanAnswerAreRefused(t *testing.T) {
	user := []llm.Message{{Role: llm.RoleUser, Content: "x"}}
	for name, r := range map[string]llm.Request{
		"nothing said": {}, "only a system": {Messages: []llm.Message{{Role: llm.RoleSystem}}},
		"a role": {Messages: []llm.Message{{Role: "tool"}}}, "a limit": {Messages: user, MaxTokens: -1},
		"a schema": {Messages: user, Schema: json.RawMessage("{")},
	} {
		p := llm.Func(func(llm.Request) (llm.Response, error) { t.Error("asked"); return llm.Response{}, nil })
		if _, err := p.Complete(t.Context(), r, nil); !errors.Is(err, llm.ErrBadRequest) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAFunctionIsAProvider(t *testing.T) {
	p := llm.Func(func(r llm.Request) (llm.Response, error) { return llm.Response{Text: r.Messages[0].Content + "!"}, nil })
	r := llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: "hi"}}}
	var streamed string
	got, err := p.Complete(t.Context(), r, func(s string) { streamed += s })
	want := llm.Response{Text: "hi!", Model: "m", Finish: llm.FinishStop, Usage: llm.EstimateUsage(r, "hi!")}
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
	err := error(&llm.Error{Kind: llm.ErrRateLimited, Provider: "openai", Model: "m", Status: 429, Message: "slow down", Attempts: 5})
	const want = `openai: cannot ask model "m": rate limited (HTTP status 429): slow down (after 5 attempts)`
	if err.Error() != want || !errors.Is(err, llm.ErrRateLimited) || errors.Is(err, llm.ErrServer) {
		t.Errorf("got %v", err)
	}
	if inner := (&llm.Error{Kind: llm.ErrCut, Err: context.Canceled}); !errors.Is(inner, context.Canceled) {
		t.Error("the cause is lost")
	}
}

func TestSchemasAreShapedForServers(t *testing.T) {
	for _, c := range []struct {
		schema          string
		ok, wrap, exact bool
	}{
		{`{"type":"boolean"}`, true, true, true},
		{`{"type":["object","null"]}`, true, true, true},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, true, false, true},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, true, false, false},
		{`{"type":"object","properties":{"a":{},"b":{}},"required":["a"],"additionalProperties":false}`, true, false, false},
		{`{"type":"array","items":{"type":"object"}}`, true, true, false},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, true, true, true},
		{`{"type":"array","items":{"$ref":"#"}}`, false, false, false},
		{`{"items":{"$ref":"https://example.com/x"}}`, false, false, false},
		{`{}`, false, false, false},
		{`true`, false, false, false},
		{`{"type":"array","items":` + strings.Repeat(`{"items":`, 100) + `{}` + strings.Repeat(`}`, 101), true, true, false},
	} {
		shape, ok := llm.Shape(json.RawMessage(c.schema))
		if ok != c.ok || shape.Wrapped != c.wrap || shape.Strict != c.exact || ok && !json.Valid(shape.Schema) {
			t.Errorf("%s: got %v %+v %s", c.schema, ok, shape, shape.Schema)
		}
	}
	shape, _ := llm.Shape(json.RawMessage(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`))
	const want = `{"$defs":{"a":{"type":"string"}},"additionalProperties":false,"properties":{"value":{"$ref":"#/$defs/a"}},"required":["value"],"type":"object"}`
	if string(shape.Schema) != want {
		t.Errorf("got %s", shape.Schema)
	}
}

func TestFencesAroundAWholeReplyAreTakenOff(t *testing.T) {
	for text, want := range map[string]string{
		"```json\n[1]\n```": "[1]", " ```\n{}\n``` \n": "{}", "[1]": "[1]", "```json": "```json", "```{}```": "```{}```",
		"```a\nx\n```\nand\n```b\ny\n```": "```a\nx\n```\nand\n```b\ny\n```", "see ```x\n1\n```": "see ```x\n1\n```",
	} {
		if got := llm.Unfence(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestTheOrderToFollowASchemaStandsLast(t *testing.T) {
	messages := []llm.Message{{Role: llm.RoleUser, Content: "ask"}, {Role: llm.RoleAssistant, Content: "so"}}
	got := llm.Instruct(messages, json.RawMessage(`{"type":"boolean"}`))
	if !strings.HasPrefix(got[0].Content, "ask\n\n") || !strings.HasSuffix(got[0].Content, `{"type":"boolean"}`) || messages[0].Content != "ask" {
		t.Errorf("got %q, and the caller's is %q", got, messages)
	}
	if got := llm.Instruct(messages[1:], nil); len(got) != 2 || got[1].Role != llm.RoleUser {
		t.Errorf("got %q", got)
	}
}

func TestModelsOfARunByDepth(t *testing.T) {
	registry := llm.NewRegistry("a", nil)
	p := llm.Func(func(llm.Request) (llm.Response, error) { return llm.Response{}, nil })
	registry.Register("a", func(id string) (llm.Provider, string, error) { return p, id, nil })
	routes, err := registry.Routes("a/large", "", "small")
	if err != nil {
		t.Fatal(err)
	}
	for depth, want := range map[int]string{0: "a/large", 1: "a/large", 2: "a/small", 9: "a/small", -1: "a/large"} {
		if got := routes.At(depth).Name; got != want {
			t.Errorf("depth %d: %s", depth, got)
		}
	}
	for name, known := range map[string]bool{"small": true, "a/small": true, "a/large": true, "large": true, "a/other": false, "": false} {
		if _, ok := routes.Find(name); ok != known {
			t.Errorf("%q is found: %v", name, ok)
		}
	}
	for _, names := range [][]string{{}, {""}, {"a/x", "nobody/y"}} {
		if _, err := registry.Routes(names...); !errors.Is(err, llm.ErrUnknownName) {
			t.Errorf("%q: got %v", names, err)
		}
	}
}

type closer struct{ closed *int }

func (c closer) Close() error { *c.closed++; return errors.New("away") }

func TestARegistryClosesWhatItOwnsOnce(t *testing.T) {
	closed := 0
	registry := llm.NewRegistry("a", nil)
	registry.Own(closer{&closed})
	if err := registry.Close(); err == nil || closed != 1 {
		t.Errorf("got %v, closed %d times", err, closed)
	}
	if err := registry.Close(); err != nil || closed != 1 {
		t.Errorf("got %v, closed %d times", err, closed)
	}
}

func BenchmarkEstimateTokens(b *testing.B) {
	text := strings.Repeat("The quick brown fox 狐狸. ", 4000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		llm.EstimateTokens(text)
	}
}
