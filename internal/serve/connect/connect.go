// Package connect is the Go half of the session protocol: a program in any language holds
// sessions over a stream. docs/session-protocol.md describes the methods.
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
	"github.com/rlmhq/rlm/internal/jsonrpc"
	"github.com/rlmhq/rlm/tiers"
)

// Protocol is the version of the protocol.
const Protocol = 1

// maxSessions bounds the open sessions of a client.
const maxSessions = 1000

// Options say what a client may have.
type Options struct {
	// Version is that of the program.
	Version string
	// Limits are the limits of a session that names none.
	Limits tiers.Limits
	// Policy is the most that a session may have.
	Policy rlm.Policy
	// Deterministic makes all sessions deterministic.
	Deterministic bool
	// Files lets the client name files and folders of this host: contexts, snapshots, and where
	// files of snippets go.
	Files bool
	// Inputs say how contexts from files are read.
	Inputs inputs.Options
	Log    *slog.Logger
}

// server serves one client.
type server struct {
	engine  *rlm.Engine
	options Options
	conn    *jsonrpc.Conn

	isReady bool // after initialize; only Begin uses it

	mu       sync.Mutex
	last     int
	sessions map[string]*entry
}

// Serve answers a client until the stream ends, and closes its sessions. To end it earlier,
// close the stream.
func Serve(ctx context.Context, engine *rlm.Engine, in io.Reader, out io.Writer, o Options) error {
	s := &server{engine: engine, options: o, sessions: map[string]*entry{}}
	s.conn = jsonrpc.New(in, out, s, o.Log)
	err := s.conn.Serve(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.sessions { // no request is under way any more
		err = errors.Join(err, e.session.Close())
	}
	return err
}

// Notice implements jsonrpc.Handler. A client sends no notifications besides $/cancel.
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

	answer, err := m.begin(ctx, s, params)
	if err != nil {
		return nil, describeError(err)
	}
	return func() (any, error) {
		result, err := answer()
		return result, describeError(err)
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
		Protocol int        `json:"protocol"`
		Version  string     `json:"version" jsonschema:"of the program"`
		Tiers    []tierInfo `json:"tiers"`
		Limits   limits     `json:"limits" jsonschema:"of a session that names none"`
	}
	tierInfo struct {
		Name      string           `json:"name"`
		Isolation string           `json:"isolation"`
		Languages []tiers.Language `json:"languages"`
		OnRequest bool             `json:"on_request,omitempty" jsonschema:"whether the policy must allow it"`
	}
)

func (s *server) initialize(_ context.Context, p *initializeParams) (*initializeResult, error) {
	if p.Protocol < Protocol {
		return nil, invalid("this program speaks protocol %d, not %d", Protocol, p.Protocol)
	}
	result := &initializeResult{
		Protocol: Protocol, Version: s.options.Version, Limits: describeLimits(s.options.Limits.WithDefaults()),
	}
	for _, tier := range s.engine.Tiers() {
		info := tier.Info()
		result.Tiers = append(result.Tiers, tierInfo{
			info.Name, info.Isolation.String(), info.Languages, info.OnRequest,
		})
	}

	s.isReady = true
	s.options.Log.Debug("a client is connected", "name", p.Client.Name, "version", p.Client.Version)
	return result, nil
}
