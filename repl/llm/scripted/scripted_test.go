package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load loads the script of the tests.
func load(t *testing.T) llm.Provider {
	t.Helper()
	s, err := Load("testdata/needle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// user returns a request with one user message.
func user(text string) llm.Request {
	return llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: text}}}
}

func TestTheFirstRuleThatFitsAnswers(t *testing.T) {
	s := load(t)
	root := user("go")
	root.Metadata = llm.Metadata{Purpose: "root", Turn: 1}
	second := user("stdout:\n42\n")
	second.Metadata = llm.Metadata{Purpose: "root", Turn: 2}
	leaf := user("needle in: hay NEEDLE hay")
	leaf.Schema = json.RawMessage(`{"type":"boolean"}`)
	other := user("needle in: hay")
	other.Schema = leaf.Schema
	echo := user("echo \"a\"\n")
	echo.Messages = append([]llm.Message{{Role: llm.RoleSystem, Content: "for Ada"}},
		echo.Messages...)
	echo.Metadata = llm.Metadata{Purpose: "p", Depth: 1, Turn: 2, Slot: 3}

	for _, c := range []struct {
		request      llm.Request
		text, finish string
	}{
		{root, "```repl\nfound = ", llm.FinishStop},
		{second, "FINAL(42)", llm.FinishStop},
		{leaf, "true", llm.FinishStop},
		{other, "false", llm.FinishStop},
		{echo, `print("echo \"a\"\n", "Ada") # m p 1 2 3 0`, llm.FinishLength},
	} {
		t.Run(c.text, func(t *testing.T) {
			var streamed strings.Builder
			got, err := s.Complete(t.Context(), c.request,
				func(piece string) { streamed.WriteString(piece) })
			if err != nil || !strings.HasPrefix(got.Text, c.text) || got.Finish != c.finish ||
				got.Model != "scripted-1" || streamed.String() != got.Text {
				t.Errorf("got %+v, %v, streamed %q; want %q", got, err, streamed.String(), c.text)
			}
		})
	}

	want := llm.Usage{InputTokens: 250, OutputTokens: 1}
	if got, _ := s.Complete(t.Context(), leaf, nil); got.Usage != want {
		t.Errorf("it used %+v", got.Usage)
	}
}

func TestARequestThatNoRuleFitsIsAnError(t *testing.T) {
	_, err := load(t).Complete(t.Context(), user("what?"), nil)
	if !errors.Is(err, kind.ErrNoReply) || !strings.Contains(err.Error(), "what?") {
		t.Errorf("got %v", err)
	}
}

func TestAScriptCanFail(t *testing.T) {
	_, err := load(t).Complete(t.Context(), user("flood"), nil)
	var failure *llm.Error
	if !errors.As(err, &failure) || !errors.Is(err, kind.ErrRateLimited) ||
		failure.RetryAfter != 2*time.Second {
		t.Errorf("got %v", err)
	}
}

func TestADelayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := load(t).Complete(ctx, user("sleep"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAnswersDoNotDependOnTheOrderOfCalls(t *testing.T) {
	s := load(t)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			want, text := "false", fmt.Sprintf("needle in: %d", i)
			if i%3 == 0 {
				want, text = "true", text+" needle"
			}
			r := user(text)
			r.Schema = json.RawMessage(`{"type":"boolean"}`)
			if got, err := s.Complete(t.Context(), r, nil); err != nil || got.Text != want {
				t.Errorf("%s: got %q, %v", text, got.Text, err)
			}
		})
	}

	wg.Wait()
}

func TestRulesInGo(t *testing.T) {
	s, err := New(
		Rule{When: When{Last: "^add"}, Do: func(r llm.Request) (llm.Response, error) {
			return llm.Response{Text: fmt.Sprint(len(r.Messages))}, nil
		}},
		Rule{Do: func(llm.Request) (llm.Response, error) {
			return llm.Response{}, errors.New("no")
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Complete(t.Context(), user("add"), nil); err != nil || got.Text != "1" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := s.Complete(t.Context(), user("x"), nil); err == nil || err.Error() != "no" {
		t.Errorf("got %v", err)
	}
}

func TestBadScriptsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"empty":         {"", "empty"},
		"version":       {"version: 7", "version 7"},
		"unknown field": {"version: 1\nrules: [{replay: x}]", "replay"},
		"unknown when":  {"version: 1\nrules: [{when: {lasst: x}, reply: x}]", "lasst"},
		"no answer":     {"version: 1\nrules: [{when: {last: x}}]", "rule 1"},
		"two answers":   {"version: 1\nrules: [{reply: x}, {reply: x, expand: y}]", "rule 2"},
		"expression":    {"version: 1\nrules: [{when: {last: '('}, reply: x}]", "rule 1"},
		"kind":          {"version: 1\nrules: [{error: {kind: tired}}]", "tired"},
		"delay":         {"version: 1\nrules: [{reply: x, delay: 2h}]", "2h"},
		"usage": {
			"version: 1\nrules: [{reply: x, usage: {input_tokens: -1, output_tokens: 1}}]",
			"usage",
		},
		"name": {
			"version: 1\nrules: [{when: {last: '(?P<a>x)'}, expand: '${a}${b}'}]",
			"${b}",
		},
		"too large": {"version: 1 #" + strings.Repeat("x", 16<<20), "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(strings.NewReader(c.text))
			if !errors.Is(err, kind.ErrBadFile) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}

	if _, err := New(make([]Rule, 10_001)...); !errors.Is(err, kind.ErrBadFile) {
		t.Errorf("got %v", err)
	}
}

func TestAnExpandedReplyIsBounded(t *testing.T) {
	text := strings.Repeat("${last}", 1000)
	s, err := New(Rule{Expand: &text})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Complete(t.Context(), user(strings.Repeat("x", 1<<20)), nil)
	if !errors.Is(err, kind.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/needle.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"version": 1, "rules": [{"when": {"last": "(?P<a>.*)"}, "expand": "${json:a}${a}"}]}`)
	f.Add("version: 1\nrules: [{error: {kind: server error}}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, kind.ErrBadFile) {
				t.Errorf("got %v", err)
			}
			return
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()

		if _, err := s.Complete(ctx, user(text), nil); err != nil {
			var failure *llm.Error
			if !errors.As(err, &failure) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func BenchmarkComplete(b *testing.B) {
	s, err := Load("testdata/needle.yaml")
	if err != nil {
		b.Fatal(err)
	}
	r := user("needle in: " + strings.Repeat("hay ", 1000))
	r.Schema = json.RawMessage(`{"type":"boolean"}`)

	for b.Loop() {
		if _, err := s.Complete(b.Context(), r, nil); err != nil {
			b.Fatal(err)
		}
	}
}
