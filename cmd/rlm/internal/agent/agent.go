// Package agent serves editors and evaluators that use rlm as an agent, with the Agent Client
// Protocol over stdin and stdout.
//
// A session of the protocol is a session of the engine: a conversation whose variables persist. A
// prompt is a question, and the files that it brings are contexts. Thoughts and tool calls show the
// steps of the loop. A message is an answer, so a run without an answer sends none.
package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Bounds of a connection.
const (
	maxSessions = 32
	maxQuestion = 1 << 20 // bytes of the text in a prompt
	maxAttached = 100     // contexts of a session
	maxShown    = 20_000  // bytes of code or output in a tool call
)

// Config configures a connection.
type Config struct {
	Version string
	// Open opens a session for a client's folder. Its Ask events go to progress.
	Open func(ctx context.Context, folder string, progress func(ledger.Event)) (*rlm.Session, error)
	// Read returns the context for a file that a prompt names, for a client's folder.
	Read func(folder, path string) (rlm.Context, error)
	// Note prints a note for the user.
	Note func(format string, args ...any)
}

// Serve serves one client, until it closes its side or the context ends.
func Serve(ctx context.Context, cfg Config, in io.ReadCloser, out io.Writer) error {
	life, end := context.WithCancel(ctx)
	s := &server{cfg: cfg, life: life, sessions: map[acp.SessionId]*session{}}
	ready := make(chan struct{})
	s.conn = acp.NewAgentSideConnection(s, out, &waiting{tools.BoundLines(in), ready})
	s.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(ready)

	select {
	case <-s.conn.Done():
	case <-ctx.Done():
	}
	end()
	return s.close()
}

// waiting is a reader that reads only when the connection is ready: the SDK would handle the first
// message before NewAgentSideConnection has returned.
type waiting struct {
	io.Reader
	ready <-chan struct{}
}

// Read implements [io.Reader].
func (w *waiting) Read(p []byte) (int, error) {
	<-w.ready
	return w.Reader.Read(p)
}

// server is the connection to a client.
type server struct {
	cfg  Config
	conn *acp.AgentSideConnection
	life context.Context //nolint:containedctx // the context of all prompts; ends with the connection

	mu       sync.Mutex // guards the fields below
	sessions map[acp.SessionId]*session
	opening  int // places reserved for sessions that are opening
	closed   bool
}

var _ acp.Agent = (*server)(nil)

// close ends all sessions.
func (s *server) close() error {
	s.mu.Lock()
	s.closed = true
	all := s.sessions
	s.sessions = nil
	s.mu.Unlock()

	var errs []error
	for _, one := range all {
		errs = append(errs, one.close())
	}
	return errors.Join(errs...)
}

// Initialize implements [acp.Agent].
func (s *server) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	title := "Recursive Language Model"
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber,
		AgentInfo:       &acp.Implementation{Name: "rlm", Title: &title, Version: s.cfg.Version},
		AgentCapabilities: acp.AgentCapabilities{
			PromptCapabilities:  acp.PromptCapabilities{EmbeddedContext: true},
			SessionCapabilities: acp.SessionCapabilities{Close: &acp.SessionCloseCapabilities{}},
		},
		AuthMethods: []acp.AuthMethod{},
	}, nil
}

// Authenticate implements [acp.Agent]. It does nothing, because the models' keys are settings.
func (s *server) Authenticate(context.Context, acp.AuthenticateRequest) (r acp.AuthenticateResponse, err error) {
	return r, nil
}

// NewSession implements [acp.Agent].
func (s *server) NewSession(_ context.Context, r acp.NewSessionRequest) (out acp.NewSessionResponse, err error) {
	if !filepath.IsAbs(r.Cwd) {
		return out, refuse("the folder %.200q is not absolute: give an absolute cwd", r.Cwd)
	}
	if len(r.McpServers) > 0 {
		s.cfg.Note("the MCP servers of the client are not used: name yours with --mcp")
	}

	if err := s.reserve(); err != nil {
		return out, err
	}

	one := &session{server: s, id: acp.SessionId(rand.Text()), folder: r.Cwd}
	one.session, err = s.cfg.Open(s.life, r.Cwd, one.show)
	if err != nil {
		s.put(nil)
		return out, acp.NewInternalError(map[string]any{"error": err.Error()})
	}
	if !s.put(one) {
		return out, errors.Join(refuse("the connection ends"), one.close())
	}
	out.SessionId = one.id
	return out, nil
}

// reserve reserves the place of a session.
func (s *server) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions)+s.opening >= maxSessions {
		return refuse("a client has at most %d sessions: close one with session/close", maxSessions)
	}
	s.opening++
	return nil
}

// put fills a reserved place, or frees it if there is no session. It reports whether the connection
// still accepts sessions.
func (s *server) put(one *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	if one != nil && !s.closed {
		s.sessions[one.id] = one
	}

	return !s.closed
}

// find returns a session.
func (s *server) find(id acp.SessionId) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	if one == nil {
		return nil, refuse("there is no session %.100q: begin one with session/new", string(id))
	}

	return one, nil
}

func (s *server) forget(id acp.SessionId) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// Prompt implements [acp.Agent]. The library cancels the context of a prompt when the next one
// arrives; here the next one is refused instead.
func (s *server) Prompt(_ context.Context, r acp.PromptRequest) (out acp.PromptResponse, err error) {
	one, err := s.find(r.SessionId)
	if err != nil {
		return out, err
	}
	return one.prompt(s.life, r.Prompt)
}

// Cancel implements [acp.Agent].
func (s *server) Cancel(_ context.Context, r acp.CancelNotification) error {
	one, err := s.find(r.SessionId)
	if err != nil {
		return err
	}
	if cancel := one.cancel.Load(); cancel != nil {
		(*cancel)()
	}

	return nil
}

// CloseSession implements [acp.Agent].
func (s *server) CloseSession(
	ctx context.Context, r acp.CloseSessionRequest,
) (out acp.CloseSessionResponse, err error) {
	one, err := s.find(r.SessionId)
	if err != nil {
		return out, err
	}

	if err := s.Cancel(ctx, acp.CancelNotification{SessionId: r.SessionId}); err != nil {
		return out, err
	}
	s.forget(r.SessionId)
	return out, one.close()
}

// ListSessions implements [acp.Agent].
func (s *server) ListSessions(context.Context, acp.ListSessionsRequest) (r acp.ListSessionsResponse, err error) {
	return r, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}

// ResumeSession implements [acp.Agent].
func (s *server) ResumeSession(context.Context, acp.ResumeSessionRequest) (r acp.ResumeSessionResponse, err error) {
	return r, acp.NewMethodNotFound(acp.AgentMethodSessionResume)
}

// SetSessionConfigOption implements [acp.Agent].
func (s *server) SetSessionConfigOption(
	context.Context, acp.SetSessionConfigOptionRequest,
) (r acp.SetSessionConfigOptionResponse, err error) {
	return r, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}

// SetSessionMode implements [acp.Agent].
func (s *server) SetSessionMode(
	context.Context, acp.SetSessionModeRequest,
) (r acp.SetSessionModeResponse, err error) {
	return r, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}

// refuse returns the error of a request that the client must change.
func refuse(format string, args ...any) error {
	return acp.NewInvalidParams(map[string]any{"error": fmt.Sprintf(format, args...)})
}
