// Package llmtest is a model server for tests. It implements the formats of OpenAI and Anthropic on
// loopback, with and without streams, with a Go function as the model. If a test requests it, the
// server fails in all the ways that real servers do.
//
//	server := llmtest.Start(func(r llm.Request) (llm.Response, error) {
//		return script.Complete(ctx, r, nil)
//	})
//	defer server.Close()
//	models, err := providers.New(providers.Options{Env: server.Env})
//	model, err := models.Resolve("anthropic/any")
//
// It shares no code with the providers tested against it. The Metadata of a request is not sent, so
// a function behind this server receives only the messages.
package llmtest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
)

// Key is the key that the server requires.
const Key = "sk-llmtest-0123456789abcdef"

// Seen is a request that has arrived.
type Seen struct {
	Format string // "openai" or "anthropic"
	Path   string // including the query
	Header http.Header
	Body   string
}

// Server is a model server on loopback.
type Server struct {
	answer llm.Func
	quirks *quirks // nil for a server without quirks
	http   *httptest.Server
	gone   chan struct{} // closed when the server closes; it ends stalled replies
	once   sync.Once

	mu     sync.Mutex
	faults []*Fault
	seen   []Seen
	active int
	peak   int
}

// Start starts a server with a function as its model. The caller must Close it.
func Start(answer llm.Func) *Server { return start(answer, nil) }

func start(answer llm.Func, q *quirks) *Server {
	s := &Server{answer: answer, quirks: q, gone: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve(openAI{}))
	mux.HandleFunc("POST /openai/v1/chat/completions", s.serve(openAI{}))
	mux.HandleFunc("POST /openai/deployments/{model}/chat/completions", s.serve(openAI{}))
	mux.HandleFunc("POST /v1/embeddings", s.serve(embeddings{}))
	mux.HandleFunc("POST /openai/v1/embeddings", s.serve(embeddings{}))
	mux.HandleFunc("POST /openai/deployments/{model}/embeddings", s.serve(embeddings{}))
	mux.HandleFunc("POST /v1/messages", s.serve(anthropic{}))
	mux.HandleFunc("GET /v1/models", s.serveModels)
	mux.HandleFunc("GET /v1/models/{model}", s.serveModels)
	s.http = httptest.NewServer(mux)
	return s
}

// URL returns the server's address, without a path.
func (s *Server) URL() string { return s.http.URL }

// Env returns the environment of a user who has configured every provider to use this server. It is
// for providers.Options.
func (s *Server) Env(name string) string {
	switch name {
	case "OPENAI_BASE_URL", "OPENROUTER_BASE_URL", "VLLM_BASE_URL", "LITELLM_PROXY_API_BASE",
		"GEMINI_BASE_URL":
		return s.URL() + "/v1"
	case "ANTHROPIC_BASE_URL", "OLLAMA_HOST", "AZURE_OPENAI_ENDPOINT":
		return s.URL()
	}
	if strings.HasSuffix(name, "_API_KEY") {
		return Key
	}
	return ""
}

// Close ends all requests and stops the server. It may be called repeatedly.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.gone)
		s.http.CloseClientConnections()
		s.http.Close()
	})
}

// Fail adds faults. Each request gets the first matching fault that has not been used up.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, f := range faults {
		if f.Times == 0 {
			f.Times = 1
		}
		s.faults = append(s.faults, &f)
	}
}

// Seen returns the requests for replies in order of arrival.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.seen)
}

// Peak returns the largest number of requests served at the same time.
func (s *Server) Peak() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.peak
}

// format is a wire format.
type format interface {
	name() string
	key(http.Header) string
	decode(body []byte, path string) (r llm.Request, stream bool, err error)
	whole(llm.Response) []byte
	stream(llm.Response) [][]byte
	finish() string // the finish reason of a complete reply
	failure(status int, code, message string) []byte
}

// maxRequest bounds a request, in bytes.
const maxRequest = 64 << 20

// serve answers requests in a format.
func (s *Server) serve(f format) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxRequest))
		if err != nil {
			return // the client has disconnected
		}
		s.enter(Seen{
			Format: f.name(), Path: req.URL.RequestURI(),
			Header: req.Header.Clone(), Body: string(body),
		})
		defer s.leave()

		s.reply(f, req, body).write(w, req, s.gone)
	}
}

// reply returns the reply to a request.
func (s *Server) reply(f format, req *http.Request, body []byte) *Reply {
	if got := f.key(req.Header); got != Key {
		message := "Incorrect API key provided: " + got
		return newFailure(f, http.StatusUnauthorized, "invalid_api_key", message)
	}
	if s.quirks != nil && f == (openAI{}) {
		if refusal := s.quirks.refuse(body); refusal != nil {
			return refusal
		}
	}
	r, stream, err := f.decode(body, req.PathValue("model"))
	if err != nil {
		return newFailure(f, http.StatusBadRequest, "invalid_request_error", err.Error())
	}

	inner, isWrapped := unwrapSchema(r.Schema)
	if isWrapped {
		r.Schema = inner
	}
	response, err := s.answer.Complete(req.Context(), r, nil)
	if err == nil && isWrapped && response.Finish != llm.FinishRefusal {
		response.Text = wrapValue(response.Text)
	}

	reply := render(f, response, stream, err)
	if s.quirks != nil && f == (openAI{}) && reply.Status == http.StatusOK {
		reply = s.quirks.render(response)
	}
	if fault := s.useFault(r); fault != nil {
		fault.Alter(reply, Exchange{Request: r, Response: response, Stream: stream, format: f})
	}
	return reply
}

// render encodes a response or an error in a format.
func render(f format, response llm.Response, stream bool, err error) *Reply {
	var failure *llm.Error
	switch {
	case errors.As(err, &failure):
		status, code := describeKind(failure.Kind)
		reply := newFailure(f, status, code, failure.Message)
		if failure.RetryAfter > 0 {
			reply.Header.Set("Retry-After", fmt.Sprint(int(failure.RetryAfter.Seconds())))
		}
		return reply
	case err != nil:
		return newFailure(f, http.StatusInternalServerError, "server_error", err.Error())
	case stream:
		return &Reply{
			Status: http.StatusOK,
			Header: http.Header{"Content-Type": {"text/event-stream"}},
			Chunks: f.stream(response),
		}
	}
	return &Reply{
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"application/json"}},
		Chunks: [][]byte{f.whole(response)},
	}
}

// describeKind returns how a server reports a kind of failure.
func describeKind(kind error) (status int, code string) {
	switch fmt.Sprint(kind) {
	case "rate limited":
		return http.StatusTooManyRequests, "rate_limit_error"
	case "no credit left":
		return http.StatusTooManyRequests, "insufficient_quota"
	case "key refused":
		return http.StatusUnauthorized, "authentication_error"
	case "unknown model":
		return http.StatusNotFound, "model_not_found"
	case "prompt too long":
		return http.StatusBadRequest, "context_length_exceeded"
	case "refused by filter":
		return http.StatusBadRequest, "content_filter"
	case "server error", "no reply in time", "reply cut off":
		return http.StatusInternalServerError, "server_error"
	default:
		return http.StatusBadRequest, "invalid_request_error"
	}
}

// useFault uses up and returns the first fault that matches a request, or nil.
func (s *Server) useFault(r llm.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, f := range s.faults {
		if f.Times != 0 && (f.When == nil || f.When(r)) {
			f.Times--
			return f
		}
	}
	return nil
}

// serveModels answers requests about models. Every model exists, except if its name begins with
// "no-".
func (s *Server) serveModels(w http.ResponseWriter, req *http.Request) {
	s.describeModel(req).write(w, req, s.gone)
}

// describeModel returns the reply to a request about models.
func (s *Server) describeModel(req *http.Request) *Reply {
	h := req.Header
	if !strings.Contains(h.Get("Authorization")+h.Get("X-Api-Key")+h.Get("Api-Key"), Key) {
		return newFailure(openAI{}, http.StatusUnauthorized, "authentication_error", "no key")
	}
	if model := req.PathValue("model"); strings.HasPrefix(model, "no-") {
		return newFailure(anthropic{}, http.StatusNotFound, "not_found_error", "model: "+model)
	}

	list := []byte(`{"data":[{"id":"any"},{"id":"scripted"}]}`)
	return &Reply{Status: http.StatusOK, Chunks: [][]byte{list}}
}

// enter records a request in flight.
func (s *Server) enter(seen Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.seen = append(s.seen, seen)
	s.active++
	s.peak = max(s.peak, s.active)
}

// leave records the end of a request.
func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.active--
}
