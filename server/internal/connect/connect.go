// Package connect implements the server side of the session protocol, with which a program in any
// language controls sessions over a stream. docs/reference/session-protocol.md describes the
// methods.
package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/server/internal/terms"
	"github.com/rlmhq/rlm/tiers"
)

// Protocol is the version of the protocol.
const Protocol = 1

// maxSessions is the maximum number of open sessions of a client.
const maxSessions = 1000

// Options configure what a client may do.
type Options struct {
	// Version is the version of the program.
	Version string
	// Limits apply to a session that sets none. MayRaise lets a session set higher ones.
	Limits   tiers.Limits
	MayRaise bool
	// Policy is the widest policy that a session may have.
	Policy rlm.Policy
	// Deterministic makes all sessions deterministic.
	Deterministic bool
	// Files lets the client name files and folders of this host: contexts, snapshots, and
	// destinations for files of snippets.
	Files bool
	// Inputs configure how contexts are read from files.
	Inputs inputs.Options
	// Admit, if set, is called before each request. Its error is the answer.
	Admit func(ctx context.Context) error
	// Reserve, if set, is called before a session opens. Its release is called when the session
	// has ended.
	Reserve func() (release func(), err error)
	// Keeper, if set, keeps named sessions.
	Keeper Keeper
	// Note, if set, is called at the end of each request with its method, the session that it
	// names, and its outcome, which is ok or the kind of its error.
	Note func(method, session, outcome string)
	// Labels identify the client: see rlm.SessionConfig.
	Labels map[string]string
	// MaxHeld bounds the memory of active requests, in bytes; 0 means the bound of package
	// jsonrpc. Hold, if set, counts it together with that of other connections.
	MaxHeld int
	Hold    func(n int) error
	Log     *slog.Logger
}

// Keeper keeps named sessions longer than a connection.
type Keeper interface {
	// Hold opens a named session exclusively for this connection. The session has the functions
	// until Release. The notes describe losses, and contexts that were changed for snippets.
	Hold(ctx context.Context, r *KeptRequest) (_ Kept, notes []string, err error)
}

// KeptRequest requests a named session.
type KeptRequest struct {
	Name          string
	Contexts      []KeptContext
	Functions     []rlm.Function
	Limits        terms.Limits
	Policy        terms.Policy
	Deterministic bool
	Out           bool
	Durability    string
}

// KeptContext is a context of a named session: a text, or the JSON of a value.
type KeptContext struct {
	Name    string
	Text    string
	IsValue bool
}

// Kept is a named session that a connection holds.
type Kept interface {
	// Enter begins a request of the connection, which lasts until leave is called. An error of
	// leave is an error of the request.
	Enter(ctx context.Context) (_ context.Context, session *rlm.Session, leave func() error, err error)
	// Add adds contexts, between Enter and leave.
	Add(ctx context.Context, contexts []KeptContext) error
	// Release lets other requests use the session.
	Release() error
}

// server serves one client.
type server struct {
	engine  *rlm.Engine
	options Options
	conn    *jsonrpc.Conn

	isReady bool // whether initialize was called; only Begin uses it

	mu       sync.Mutex
	last     int
	sessions map[string]*entry
}

// Serve answers a client until the stream ends, and then closes its sessions. To end it earlier,
// close the stream.
func Serve(ctx context.Context, engine *rlm.Engine, in io.Reader, out io.Writer, o Options) error {
	s := &server{engine: engine, options: o, sessions: map[string]*entry{}}
	s.conn = jsonrpc.New(in, out, s, o.Log)
	s.conn.OnRefusal(func(method string, why *jsonrpc.Error) { s.note(method, nil, why) })
	if o.MaxHeld > 0 {
		s.conn.Bound(o.MaxHeld, o.Hold)
	}
	err := s.conn.Serve(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.sessions { // no request is active any more
		err = errors.Join(err, e.close())
	}
	return err
}

// Notice implements jsonrpc.Handler. The only notification from a client is $/cancel.
func (s *server) Notice(method string, _ jsonrpc.Raw) error {
	return fmt.Errorf("unknown notification %q", method)
}

// Begin implements jsonrpc.Handler.
func (s *server) Begin(ctx context.Context, name string, params jsonrpc.Raw) (jsonrpc.Answer, error) {
	m, ok := methods[name]
	if !ok {
		return nil, jsonrpc.NewError(jsonrpc.CodeUnknownMethod, nil, "unknown method %q", name)
	}
	if s.isReady == (name == "initialize") {
		return nil, jsonrpc.NewError(jsonrpc.CodeInvalidRequest, nil, "call initialize first, and once")
	}

	var answer jsonrpc.Answer
	var err error
	if s.options.Admit != nil {
		err = s.options.Admit(ctx)
	}
	if err == nil {
		answer, err = m.begin(ctx, s, params)
	}
	if err != nil {
		err = describeError(err)
		s.note(name, params, err)
		return nil, err
	}
	return func() (any, error) {
		result, err := answer()
		err = describeError(err)
		s.note(name, params, err)
		return result, err
	}, nil
}

type (
	initializeParams struct {
		Protocol int        `json:"protocol" jsonschema:"the newest version that the client speaks"`
		Client   clientInfo `json:"client"`
	}
	clientInfo struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	initializeResult struct {
		Protocol int          `json:"protocol"`
		Version  string       `json:"version" jsonschema:"of the program"`
		Tiers    []terms.Tier `json:"tiers"`
		Limits   terms.Limits `json:"limits" jsonschema:"of a session that names none"`
	}
)

func (s *server) initialize(_ context.Context, p *initializeParams) (*initializeResult, error) {
	if p.Protocol < Protocol {
		return nil, invalid("this program speaks protocol %d, not %d", Protocol, p.Protocol)
	}
	s.isReady = true
	s.options.Log.Debug("a client is connected", "name", p.Client.Name, "version", p.Client.Version)
	return &initializeResult{
		Protocol: Protocol, Version: s.options.Version, Tiers: terms.List(s.engine.Tiers()),
		Limits: terms.Describe(s.options.Limits.WithDefaults()),
	}, nil
}
