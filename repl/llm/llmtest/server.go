// Package llmtest is a model server for tests. It speaks the formats of OpenAI
// and Anthropic on loopback, streamed and not, with a Go function as the model,
// and fails in all the ways that real servers do when told to.
//
//	server := llmtest.Start(func(r llm.Request) (llm.Response, error) {
//		return script.Complete(ctx, r, nil)
//	})
//	defer server.Close()
//	models, err := providers.New(providers.Config{Env: server.Env})
//	model, err := models.Resolve("anthropic/any")
//
// It shares no code with the providers that are tested against it. What a
// request carries beside its text, its Metadata, does not go over the wire, so
// a function behind this server answers by what the messages say.
package llmtest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
)

// Key is the key that the server wants.
const Key = "sk-llmtest-0123456789abcdef"

// Seen is a request as it came.
type Seen struct {
	Format string // "openai" or "anthropic"
	Path   string // with the query
	Header http.Header
	Body   string
}

// Server is a model server on loopback.
type Server struct {
	answer llm.Func
	http   *httptest.Server
	gone   chan struct{} // closed when the server is closing; ends what stalls
	once   sync.Once

	mu     sync.Mutex
	faults []*Fault
	seen   []Seen
	active int
	peak   int
}

// Start starts a server whose model is a function. Close it.
func Start(answer llm.Func) *Server {
	s := &Server{answer: answer, gone: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve(openAI{}))
	mux.HandleFunc("POST /openai/v1/chat/completions", s.serve(openAI{}))
	mux.HandleFunc("POST /openai/deployments/{model}/chat/completions", s.serve(openAI{}))
	mux.HandleFunc("POST /v1/messages", s.serve(anthropic{}))
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /v1/models/{model}", s.models)
	s.http = httptest.NewServer(mux)
	return s
}

// URL is the server's address, without a path.
func (s *Server) URL() string { return s.http.URL }

// Env answers like the environment of somebody who has set up every provider to
// use this server, for providers.Config.
func (s *Server) Env(name string) string {
	switch name {
	case "OPENAI_BASE_URL", "OPENROUTER_BASE_URL", "VLLM_BASE_URL", "LITELLM_PROXY_API_BASE":
		return s.URL() + "/v1"
	case "ANTHROPIC_BASE_URL", "OLLAMA_HOST", "AZURE_OPENAI_ENDPOINT":
		return s.URL()
	}
	if strings.HasSuffix(name, "_API_KEY") {
		return Key
	}
	return ""
}

// Close ends all requests and stops the server. It may be called again.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.gone)
		s.http.CloseClientConnections()
		s.http.Close()
	})
}

// Fail adds faults. The first one that fits a request and has not been used up
// is applied to it.
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

// Seen returns the requests for replies that have come, in their order.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Seen(nil), s.seen...)
}

// Peak returns how many requests were served at the same time at most.
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
	failure(status int, code, message string) []byte
}

// maxRequest bounds a request.
const maxRequest = 64 << 20

// serve answers requests in a format.
func (s *Server) serve(f format) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxRequest))
		if err != nil {
			return // the client has gone
		}
		s.enter(Seen{Format: f.name(), Path: req.URL.RequestURI(), Header: req.Header.Clone(), Body: string(body)})
		defer s.leave()
		if got := f.key(req.Header); got != Key {
			failed(f, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+got).write(w, req, s.gone)
			return
		}
		r, stream, err := f.decode(body, req.PathValue("model"))
		if err != nil {
			failed(f, http.StatusBadRequest, "invalid_request_error", err.Error()).write(w, req, s.gone)
			return
		}
		s.reply(f, r, stream).write(w, req, s.gone)
	}
}

// reply returns what to answer to a request, faults applied.
func (s *Server) reply(f format, r llm.Request, stream bool) *Reply {
	inner, wrapped := unwrapped(r.Schema)
	if wrapped {
		r.Schema = inner
	}
	response, err := s.answer(r)
	if err == nil {
		response = response.Filled(r)
		if wrapped && response.Finish != llm.FinishRefusal {
			response.Text = wrap(response.Text)
		}
	}
	reply := render(f, response, stream, err)
	if fault := s.fault(r); fault != nil {
		fault.Alter(reply, Exchange{Request: r, Response: response, Stream: stream, format: f})
	}
	return reply
}

// render puts a response, or an error, into a format.
func render(f format, response llm.Response, stream bool, err error) *Reply {
	var failure *llm.Error
	switch {
	case errors.As(err, &failure):
		status, code := statusOf(failure.Kind)
		reply := failed(f, status, code, failure.Message)
		if failure.RetryAfter > 0 {
			reply.Header.Set("Retry-After", fmt.Sprint(int(failure.RetryAfter.Seconds())))
		}
		return reply
	case err != nil:
		return failed(f, http.StatusInternalServerError, "server_error", err.Error())
	case stream:
		return &Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Chunks: f.stream(response)}
	}
	return &Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Chunks: [][]byte{f.whole(response)}}
}

// statusOf returns how a server says a kind of failure.
func statusOf(kind llm.KindError) (status int, code string) {
	switch kind {
	case llm.ErrRateLimited:
		return http.StatusTooManyRequests, "rate_limit_error"
	case llm.ErrQuota:
		return http.StatusTooManyRequests, "insufficient_quota"
	case llm.ErrAuth:
		return http.StatusUnauthorized, "authentication_error"
	case llm.ErrUnknownModel:
		return http.StatusNotFound, "model_not_found"
	case llm.ErrContextLength:
		return http.StatusBadRequest, "context_length_exceeded"
	case llm.ErrRefused:
		return http.StatusBadRequest, "content_filter"
	case llm.ErrServer, llm.ErrTimeout, llm.ErrCut:
		return http.StatusInternalServerError, "server_error"
	default:
		return http.StatusBadRequest, "invalid_request_error"
	}
}

// fault uses up the first fault that fits a request.
func (s *Server) fault(r llm.Request) *Fault {
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

// models answers what models there are: all whose name does not begin with "no-".
func (s *Server) models(w http.ResponseWriter, req *http.Request) {
	if !strings.Contains(req.Header.Get("Authorization")+req.Header.Get("X-Api-Key")+req.Header.Get("Api-Key"), Key) {
		failed(openAI{}, http.StatusUnauthorized, "authentication_error", "no key").write(w, req, s.gone)
		return
	}
	model := req.PathValue("model")
	if strings.HasPrefix(model, "no-") {
		failed(anthropic{}, http.StatusNotFound, "not_found_error", "model: "+model).write(w, req, s.gone)
		return
	}
	(&Reply{Status: http.StatusOK, Chunks: [][]byte{[]byte(`{"data":[{"id":"any"},{"id":"scripted"}]}`)}}).write(w, req, s.gone)
}

// enter and leave count the requests in flight.
func (s *Server) enter(seen Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, seen)
	s.active++
	s.peak = max(s.peak, s.active)
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}
