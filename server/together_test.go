package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
)

// together sends a request eight times concurrently, and returns the answers.
func (s *tested) together(path string, body object, word string) []answer {
	const count = 8
	answers := make(chan answer, count)
	for range count {
		go func() { answers <- s.do("POST", path, "", body, "Idempotency-Key", word) }()
	}
	all := make([]answer, count)
	for i := range all {
		all[i] = <-answers
	}
	return all
}

// TestRequestsAtOnceWithOneIdempotencyKey checks that concurrent requests with one key all get the
// same answer.
func TestRequestsAtOnceWithOneIdempotencyKey(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.AtOnce, o.Queue = 20, 20 })
	with := func(more object) object {
		body := object{"model": "rlm/default", "input": "hi"}
		for name, value := range more {
			body[name] = value
		}
		return body
	}
	talk := s.text(s.do("POST", "/v1/conversations", "", object{}), "id")
	long := []object{{"role": "user", "content": []object{{"type": "input_text", "text": hay}}}}
	for name, c := range map[string]struct {
		path string
		body object
		id   []string
	}{
		"a completion":                   {"/v1/chat/completions", chat("hi"), []string{"id"}},
		"a completion by a run":          {"/v1/chat/completions", chat(hay, "how many?"), []string{"rlm", "run"}},
		"a response":                     {respond, with(nil), []string{"id"}},
		"a response that is not kept":    {respond, with(object{"store": false}), []string{"id"}},
		"a response later":               {respond, with(object{"background": true}), []string{"id"}},
		"a response by a run":            {respond, with(object{"input": long}), []string{"id"}},
		"a response in a conversation":   {respond, with(object{"conversation": talk}), []string{"id"}},
		"a message":                      {messages, ask("hi"), []string{"id"}},
		"a run":                          {"/v1/runs", object{"question": "how many?"}, []string{"id"}},
		"a session":                      {"/v1/sessions", object{}, []string{"id"}},
		"a session with a name":          {"/v1/sessions", object{"name": "a"}, []string{"id"}},
		"a run's response, conversation": {respond, with(object{"conversation": talk, "input": long}), []string{"id"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := s.together(c.path, c.body, name)
			for _, one := range all {
				s.want(one, 200, "")
				if s.text(one, c.id...) != s.text(all[0], c.id...) || s.text(one, c.id...) == "" {
					t.Errorf("the answers differ:\n%s\n%s", one.body, all[0].body)
				}
			}
		})
	}
}

// failing is a model that fails the first call when the test releases it.
type failing struct {
	llm.Provider
	count   atomic.Int64
	asked   chan struct{}
	release chan struct{}
}

func (f *failing) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	if f.count.Add(1) > 1 {
		return f.Provider.Complete(ctx, r, stream)
	}
	close(f.asked)
	<-f.release
	return llm.Response{}, &llm.Error{Message: "broken"}
}

// TestARequestThatWaitsAsksAgain checks that a waiting request asks the model itself if the first
// request with its Idempotency-Key fails.
func TestARequestThatWaitsAsksAgain(t *testing.T) {
	for path, body := range map[string]object{
		"/v1/chat/completions": chat("hi"),
		respond:                {"model": "rlm/default", "input": "hi"},
	} {
		t.Run(path, func(t *testing.T) {
			model := &failing{counting(t), atomic.Int64{}, make(chan struct{}), make(chan struct{})}
			s := start(t, t.TempDir(), model, nil)
			first, second := make(chan answer, 1), make(chan answer, 1)
			go func() { first <- s.do("POST", path, "", body, "Idempotency-Key", "w") }()
			<-model.asked
			streamed := object{"stream": path != respond}
			for name, value := range body {
				streamed[name] = value
			}
			go func() { second <- s.do("POST", path, "", streamed, "Idempotency-Key", "w") }()
			close(model.release)
			s.want(<-first, 502, "model_failed")
			s.want(<-second, 200, "Hello.")
		})
	}
}

// TestAConversationIsLocked checks that, while a conversation has an unfinished response, other
// requests for it get the same error as from OpenAI.
func TestAConversationIsLocked(t *testing.T) {
	model := newHeld(counting(t))
	s := start(t, t.TempDir(), model, func(o *Options) { o.AtOnce = 20 })
	talk := s.text(s.do("POST", "/v1/conversations", "", object{}), "id")
	body := object{"model": "rlm/default", "input": "wait", "conversation": talk}

	const count = 8
	answers := make(chan answer, count)
	for range count {
		go func() { answers <- s.do("POST", respond, "", body) }()
	}
	for range count - 1 { // the requests that find the first one in progress
		got := <-answers
		s.want(got, 400, `"code":"conversation_locked"`)
		s.want(got, 400, `"param":"conversation"`)
		if got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "invalid_request_error") {
			t.Errorf("the error is %v %s", got.header, got.body)
		}
	}
	close(model.release)
	s.want(<-answers, 200, "Hello.")
	s.want(s.do("POST", respond, "", body), 200, "Hello.")
}

// TestOneIdempotencyKeyHasOneRequest checks that a key cannot be reused for a request that differs
// only in the server's own tool.
func TestOneIdempotencyKeyHasOneRequest(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	body := object{"model": "rlm/default", "input": "hi"}
	s.want(s.do("POST", respond, "", body, "Idempotency-Key", "w"), 200, "Hello.")
	body["tools"] = []object{{"type": "code_interpreter"}}
	s.want(s.do("POST", respond, "", body, "Idempotency-Key", "w"), 422, "idempotency_mismatch")
}

// TestARunWithoutAClientIsBegunAnew checks that a client whose connection broke may send its
// request again, which begins a new run.
func TestARunWithoutAClientIsBegunAnew(t *testing.T) {
	response := object{"model": "rlm/default", "input": []object{{"role": "user", "content": []object{
		{"type": "input_text", "text": hay}, {"type": "input_text", "text": "wait"},
	}}}}
	for path, body := range map[string]object{
		"/v1/chat/completions": chat(hay, "wait"),
		respond:                response,
	} {
		t.Run(path, func(t *testing.T) {
			model := newHeld(counting(t))
			s := start(t, t.TempDir(), model, nil)
			content, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}

			ctx, disconnect := context.WithCancel(t.Context())
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.web.URL+path, bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Idempotency-Key", "w")
			broken := make(chan error, 1)
			go func() {
				got, err := s.web.Client().Do(request)
				if err == nil {
					err = got.Body.Close()
				}
				broken <- err
			}()
			<-model.asked
			disconnect()
			if err := <-broken; err == nil {
				t.Error("the first request got an answer")
			}
			for !strings.Contains(s.do("GET", "/v1/runs", "", nil).body, `"canceled"`) {
				time.Sleep(time.Millisecond)
			}

			close(model.release)
			s.want(s.do("POST", path, "", body, "Idempotency-Key", "w"), 200, "200")
		})
	}
}
