package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// maxMessage is the maximum size of a client's message, in bytes.
const maxMessage = 16 << 20

// Config configures a server.
type Config struct {
	Version string
	// Open opens a session with contexts in addition to the user's, and with all tools. The
	// session's questions send their events to progress.
	Open func(ctx context.Context, more []rlm.Context, progress func(ledger.Event)) (*rlm.Session, error)
	// Read returns the context for a path that a client names. PathHelp describes these paths in a
	// sentence.
	Read     func(ctx context.Context, path string) (Given, error)
	PathHelp string
	// Detect returns the language of a snippet.
	Detect func(ctx context.Context, source string) tiers.Language
	// Contexts are the names of the user's contexts.
	Contexts []string
	// Functions describes the functions that snippets can call. It is empty if there are none.
	Functions string
	// Servers are MCP servers with tools that snippets can call; nil means none. Gateway makes them
	// available to hosts.
	Servers *tools.Servers
	Gateway *tools.Gateway
	// Asks means that sessions have a model. Answer, if set, answers questions in place of
	// sessions, about the contexts with which a handle was opened.
	Asks   bool
	Answer func(ctx context.Context, question string, given []Given, progress func(ledger.Event)) (Answer, error)
	// Record, if set, returns the record, as JSON, of a run that this server did not make itself,
	// or nil if there is none.
	Record func(ctx context.Context, id string) (json.RawMessage, error)
	// Work, if set, runs the work of a call after a possible wait, or refuses it. Nil means that
	// work runs immediately.
	Work func(ctx context.Context, work func(context.Context) error) error
	// Note, if set, is called at the end of each request over HTTP. Its arguments are the header
	// X-Request-Id, the method, the object that the request names (a tool, a resource, a task), and
	// the outcome: ok, error, or failed if a tool reports failure.
	Note func(request, method, object, outcome string)
	// NoQuestions prevents clients from deciding on calls that wait for a person.
	NoQuestions bool
	// IsGuarded means that the hosts and origins of requests over HTTP have already been checked.
	IsGuarded bool
	// Handles is the maximum number of open handles. Places, if set, bounds the total number of
	// handles of several servers; Tenant has a share of the places. Idle is how long an unused
	// handle lives.
	Handles int
	Places  *Places
	Tenant  string
	Idle    time.Duration
	// ToolCalls bounds the tool calls of a handle's snippets, and the hosts' direct calls.
	ToolCalls int64
	Log       *slog.Logger
}

// Server serves any number of clients. Close it after use.
type Server struct {
	cfg     Config
	server  *mcp.Server
	direct  *tools.Allowance
	handles handles
	calls   calls
	tasks   tasks
	runs    runs

	shown    map[string]shownSchemas // by the tool's name
	requests atomic.Int64            // number of active HTTP requests
	values   tools.Values

	life context.Context //nolint:containedctx // the context of all requests; ends with Close
	end  context.CancelCauseFunc
}

// Given is a context that a client provided.
type Given struct {
	Name string
	// Text is the content, unless the content is in a file that Path names.
	Text, Path string
	// Context is for a session. Close, if set, is called once the session has read it.
	Context rlm.Context
	Close   func()
}

// Answer is the answer to a question.
type Answer struct {
	Run     string          `json:"run" jsonschema:"the resource rlm://runs/{run} has the whole record"`
	Status  string          `json:"status"`
	Answer  any             `json:"answer,omitempty" jsonschema:"the answer, a text or another JSON value"`
	Partial string          `json:"partial,omitempty" jsonschema:"the unchecked state of a run without an answer"`
	Reason  string          `json:"reason,omitempty"`
	Turns   int             `json:"turns"`
	Spent   ledger.Spending `json:"spent"`
}

// New returns a server.
func New(cfg Config) (*Server, error) {
	if cfg.Handles < 1 || cfg.Idle <= 0 {
		return nil, errors.New("give at least 1 session, and a positive time until an idle one ends")
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Work == nil {
		cfg.Work = func(ctx context.Context, work func(context.Context) error) error { return work(ctx) }
	}
	s := &Server{cfg: cfg, direct: tools.NewAllowance(cfg.ToolCalls), shown: map[string]shownSchemas{}}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.handles.most, s.handles.idle, s.handles.places = cfg.Handles, cfg.Idle, cfg.Places
	s.handles.tenant = cfg.Tenant
	var err error
	s.server, err = s.protocol()
	return s, err
}

// Close ends all connections, requests, tasks, waiting calls, and handles.
func (s *Server) Close() error {
	s.end(errServerClosed)
	s.calls.close()
	s.tasks.close()
	for session := range s.server.Sessions() {
		_ = session.Close() // the client may be gone
	}
	return s.handles.close()
}

const instructions = `Run Python or Go in a sandbox with rlm_exec. Contexts are inputs of any size: ` +
	`rlm_open gives a handle whose snippets read them as the variables context, context_1 and so on, ` +
	`and keep their variables from snippet to snippet. Print or return only what you need to see.`

// protocol returns a protocol server with all tools.
func (s *Server) protocol() (*mcp.Server, error) {
	options := &mcp.ServerOptions{
		Instructions: instructions, Logger: s.cfg.Log, Capabilities: &mcp.ServerCapabilities{},
	}
	options.Capabilities.AddExtension(tasksExtension, nil)
	if s.cfg.Gateway != nil {
		s.cfg.Gateway.Configure(options)
	}
	server := mcp.NewServer(&mcp.Implementation{
		Name: "rlm", Title: "Sandboxed code over inputs of any size", Version: s.cfg.Version,
	}, options)
	s.addSessionTools(server)
	s.addFiles(server)
	if s.cfg.Asks {
		s.addAsk(server)
	}
	if s.cfg.Servers != nil {
		s.addSearch(server)
		s.addGateway(server)
	}
	s.addRuns(server)
	if err := s.addTasks(server); err != nil {
		return nil, err
	}
	server.AddReceivingMiddleware(s.endRequests, s.showPlain, s.nameArguments)
	if s.cfg.Note != nil {
		server.AddReceivingMiddleware(s.noteRequests) // the outermost middleware
	}
	return server, nil
}

// endRequests ends each request when the server closes, because otherwise the library would wait
// for the request.
func (s *Server) endRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(s.life, func() { cancel(errServerClosed) })()
		return next(ctx, method, req)
	}
}

// addGateway adds the objects of the other servers that the gateway passes on to hosts.
func (s *Server) addGateway(server *mcp.Server) {
	if s.cfg.Gateway == nil {
		return
	}
	s.cfg.Gateway.AddTo(server)
	for _, direct := range s.cfg.Gateway.Direct() {
		server.AddTool(direct.Tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			result, _, err := run(ctx, s, req, func(
				ctx context.Context, _ *call,
			) (*mcp.CallToolResult, struct{}, error) {
				result, err := direct.Call(s.direct.In(ctx), req)
				return result, struct{}{}, err
			})
			if err != nil {
				result = &mcp.CallToolResult{}
				result.SetError(err)
			}
			return result, nil
		})
	}
}

// Limits over HTTP.
const (
	sessionTime = 10 * time.Minute // for an idle session of the protocol; its handles live longer
	maxSessions = 100              // protocol sessions, which all take memory
	maxRequests = 100              // concurrent requests, including streams
	bodyTime    = time.Minute      // for a message
	restTime    = 5 * time.Second  // for the rest of a refused message
)

// Handler serves clients over streamable HTTP, of both the sessionless protocol generation and
// earlier ones. It refuses requests from browser pages.
func (s *Server) Handler() http.Handler {
	one := func(*http.Request) *mcp.Server { return s.server }
	options := func(isStateless bool) *mcp.StreamableHTTPOptions {
		return &mcp.StreamableHTTPOptions{
			Stateless: isStateless, Logger: s.cfg.Log, SessionTimeout: sessionTime, MaxRequestBodyBytes: maxMessage,
			DisableLocalhostProtection: s.cfg.IsGuarded, PropagateRequestCancellation: true,
		}
	}
	now, earlier := mcp.NewStreamableHTTPHandler(one, options(true)), mcp.NewStreamableHTTPHandler(one, options(false))
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.requests.Add(-1)
		if s.requests.Add(1) > maxRequests || s.isFull(r) {
			problem.Later(http.StatusTooManyRequests, "too_many_requests", 10*time.Second,
				"at most %d requests and %d sessions at the same time: end some of yours",
				maxRequests, maxSessions).Write(w)
			return
		}

		message, release, err := s.readMessage(w, r)
		defer release()
		if err != nil {
			describeUnread(err).Write(w)
			s.readRest(w, r)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(message))
		if r.Header.Get("Mcp-Protocol-Version") >= firstStateless {
			now.ServeHTTP(w, r)
			return
		}
		earlier.ServeHTTP(w, r)
	})
	if s.cfg.IsGuarded {
		return both
	}
	return refuseForeign(both)
}

// readMessage reads a message within the limits. Call release after the answer.
func (s *Server) readMessage(w http.ResponseWriter, r *http.Request) (message []byte, release func(), err error) {
	if r.ContentLength > maxMessage {
		return nil, func() {}, &http.MaxBytesError{Limit: maxMessage} // no need to read the message
	}
	flow := http.NewResponseController(w)
	if !s.cfg.IsGuarded {
		_ = flow.SetReadDeadline(time.Now().Add(bodyTime))
	}

	body, release := s.values.Bound(http.MaxBytesReader(w, r.Body, maxMessage))
	message, err = io.ReadAll(body)
	if err == nil && !s.cfg.IsGuarded {
		_ = flow.SetReadDeadline(time.Time{}) // the client may wait for its answer
	}
	return message, release, err
}

// readRest reads the rest of a refused message, so that a client that sends the whole message
// before it reads receives the answer. If the server is guarded, the guard has already done this.
func (s *Server) readRest(w http.ResponseWriter, r *http.Request) {
	if s.cfg.IsGuarded {
		return
	}
	flow := http.NewResponseController(w)
	_ = flow.Flush() // other clients read the answer immediately
	_ = flow.SetReadDeadline(time.Now().Add(restTime))
	_, _ = io.CopyN(io.Discard, r.Body, 4*maxMessage) // the client may go away
}

// describeUnread returns the reason why a message was not read, for the client.
func describeUnread(err error) *problem.Error {
	var tooLarge *http.MaxBytesError
	var known *problem.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooLarge):
		return problem.New(http.StatusRequestEntityTooLarge, "body_too_large",
			"the message has more than %d bytes: send less, or open a file by its path", tooLarge.Limit)
	case errors.Is(err, tools.ErrTogether):
		return problem.Later(http.StatusServiceUnavailable, "busy", time.Second, "%v: try again", err)
	case errors.Is(err, tools.ErrTooMany):
		return problem.New(http.StatusRequestEntityTooLarge, "body_too_large", "%v: send fewer, or a text", err)
	}
	return problem.New(http.StatusBadRequest, "invalid_request", "cannot read the message: %v", err)
}

// isFull reports whether a request begins a protocol session beyond the limit.
func (s *Server) isFull(r *http.Request) bool {
	if r.Header.Get("Mcp-Session-Id") != "" {
		return false
	}

	open := 0
	for range s.server.Sessions() {
		open++
	}
	return open >= maxSessions
}

// firstStateless is the first protocol version without sessions.
const firstStateless = "2026-07-28"

// refuseForeign refuses requests from other machines' pages. The transport itself checks that Host
// is this machine.
func refuseForeign(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); origin != "" && !isOfThisMachine(origin) {
			http.Error(w, "the origin "+origin+" may not use this server", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isOfThisMachine(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
