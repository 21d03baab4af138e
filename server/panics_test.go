package server

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// TestARunThatPanicsFailsAlone checks that the server continues, that its log has the reason, and
// that the client receives no details.
func TestARunThatPanicsFailsAlone(t *testing.T) {
	const secret = "a secret of the server"
	var panics atomic.Bool
	s := start(t, t.TempDir(), counting(t), func(o *Options) {
		o.Profiles[0].Observe = func(_ context.Context, next func(ledger.Event)) (func(ledger.Event), func(), error) {
			if panics.Load() {
				panic(secret)
			}
			return next, func() {}, nil
		}
	})

	panics.Store(true)
	made := s.do("POST", "/v1/runs", "", object{"question": "how many?", "contexts": []object{{"text": hay}}})
	s.want(made, 200, `"id":"run_`)
	path := "/v1/runs/" + s.text(made, "id")
	s.do("GET", path+"/events", "", nil) // until the run has ended

	ended := s.do("GET", path, "", nil)
	s.want(ended, 200, `"status":"failed"`)
	s.want(ended, 200, "the log of the server has the reason")
	if strings.Contains(ended.body, secret) {
		t.Errorf("the client gets the panic: %s", ended.body)
	}
	if logs := s.logs.String(); !strings.Contains(logs, secret) || !strings.Contains(logs, "panics_test.go") {
		t.Errorf("the log lacks the panic or its place: %s", logs)
	}

	panics.Store(false)
	s.runToEnd("")
}

// TestAProviderThatPanicsFailsItsAnswerAlone checks streams and later answers, too: separate
// goroutines make them, where a panic would end the process.
func TestAProviderThatPanicsFailsItsAnswerAlone(t *testing.T) {
	const secret = "a secret of the server"
	var panics atomic.Bool
	s := start(t, t.TempDir(), llm.Func(func(llm.Request) (llm.Response, error) {
		if panics.Load() {
			panic(secret)
		}
		return llm.Response{Text: "hello"}, nil
	}), nil)

	chat := object{"model": "rlm/default", "messages": []object{{"role": "user", "content": "hi"}}}
	for path, body := range map[string]object{
		"/v1/chat/completions": chat,
		"/v1/messages":         {"model": "rlm/default", "max_tokens": 9, "messages": chat["messages"]},
		"/v1/responses":        {"model": "rlm/default", "input": "hi"},
	} {
		panics.Store(true)
		for _, isStream := range []bool{false, true} {
			body["stream"] = isStream
			got := s.do("POST", path, "", body)
			isTold := strings.Contains(got.body, "the log of the server has the reason")
			if strings.Contains(got.body, secret) || !isTold {
				t.Errorf("%s, stream %v: %s", path, isStream, got.body)
			}
		}
		panics.Store(false)
		s.want(s.do("POST", path, "", body), 200, "hello")
	}
	if logs := s.logs.String(); !strings.Contains(logs, secret) {
		t.Errorf("the log lacks the panic: %s", logs)
	}
}
