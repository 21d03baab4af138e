// Package server serves an engine over HTTP: runs and sessions, the wire protocols of OpenAI and
// Anthropic, MCP, the viewer, and metrics.
//
// [New] makes a server from an engine and a data folder. It is an [http.Handler] to be mounted at
// the root of a host; [Server.Serve] also bounds connections and drains. [Folder] is the data
// folder; its methods create keys, claim the folder and check it.
//
// Clients are assumed to be hostile. Before any other part handles a request, the gate checks its
// host, origin, key and the limits on time, size and weight.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/anthropic"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/files"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/native"
	"github.com/rlmhq/rlm/server/internal/openai"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sessions"
	"github.com/rlmhq/rlm/server/internal/views"
	"github.com/rlmhq/rlm/server/internal/workers"
)

// Profile is a name for models, budgets and tiers, which clients choose as rlm/NAME.
type Profile = runs.Profile

// Options configure a server. Sizes are in bytes.
type Options struct {
	// Profiles are the names that clients choose as rlm/NAME. Requests without a profile use
	// "default". A profile without a model serves sessions, and refuses runs.
	Profiles []Profile
	// Dir is the data folder. Claim is the result of Dir.Claim, and ends with the server. If Claim
	// is nil, New claims the folder.
	Dir   Folder
	Claim io.Closer
	// AtOnce is the maximum number of concurrent runs; Queue is that of waiting runs. The same
	// limits apply to direct answers.
	AtOnce, Queue int
	// Sessions is the maximum number of sessions; OpenSessions is that of sessions that are open at
	// the same time.
	Sessions, OpenSessions int
	// Rest is how long a session rests before it is saved. Zero means 2 seconds.
	Rest time.Duration
	// Connections bounds the clients' connections, which never use more than half of the file
	// descriptors that the process may open. Zero means 4,096.
	Connections int
	// MaxBody bounds the body of a request, MaxFile an uploaded file, and MaxContext an unpacked
	// context. Long is the size from which a conversation becomes a run.
	MaxBody, MaxFile, MaxContext int64
	Long                         int
	// Keep is how long ended runs are kept; 0 keeps them indefinitely.
	Keep time.Duration
	// Open admits requests without a key. Hosts and Origins are those of package gate.
	Open           bool
	Hosts, Origins []string
	Inputs         inputs.Options
	// MCP serves /mcp. Servers are the MCP servers whose tools MCP clients can call; nil means
	// none. Load, if set, prepares each session that an MCP client opens.
	MCP     bool
	Servers *tools.Servers
	Load    func(context.Context, *rlm.Session) error
	Version string
	// Log receives messages for the server's operators. Nil discards them.
	Log *slog.Logger

	endpoint endpoint // replaces the MCP endpoint in tests
}

// Check reports profiles that no run of the engine could use, such as one with an unavailable
// model.
func (o *Options) Check(ctx context.Context, engine *rlm.Engine) error {
	return runs.New(runs.Options{Engine: engine, Profiles: o.Profiles}).Check(ctx)
}

// endpoint answers the requests for a path. It is closed when the server has drained.
type endpoint interface {
	http.Handler
	io.Closer
}

// Server is the HTTP handler of an engine. Close it after use.
type Server struct {
	Options
	engine  *rlm.Engine
	claim   *claim
	db      *sql.DB
	audit   *access.Audit
	keys    *access.Keys
	manager *runs.Manager
	kept    *sessions.Manager
	handler http.Handler
	// patterns contains the patterns of all routes.
	patterns []string
	mcp      endpoint
	disk     disk

	// Document describes the native API.
	Document *huma.OpenAPI
	draining atomic.Bool
}

// New makes a server from an engine, whose store must be in the data folder: see [Folder.Store].
// The error is an [*InUseError] while another process uses the folder.
func New(ctx context.Context, engine *rlm.Engine, o Options) (*Server, error) {
	if _, isOwn := o.Claim.(*claim); o.Claim != nil && !isOwn {
		return nil, errors.New("the claim of a server is not one of its folder: pass what Folder.Claim returned")
	}
	if o.MCP && len(o.Profiles) == 0 {
		return nil, errors.New("MCP has no profile: give the server one")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Connections = max(min(cmp.Or(o.Connections, defaultConnections), mostFiles()/2), 8)
	s := &Server{Options: o, engine: engine, disk: disk{dir: string(o.Dir)}}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context) (err error) {
	if s.claim, _ = s.Claim.(*claim); s.claim == nil {
		if s.claim, err = s.Dir.claim(ctx, serveProgram, ""); err != nil {
			return err
		}
	}
	dir := string(s.Dir)
	if err := heal(ctx, dir, s.claim.auditBytes(), s.Log); err != nil {
		return err
	}
	if s.db, err = records.Open(ctx, dir); err != nil {
		return err
	}
	if s.audit, err = access.OpenAudit(dir); err != nil {
		return err
	}
	s.audit.Grown = s.claim.noteAudit
	kept, err := contents.Open(ctx, s.db, dir, s.Log)
	if err != nil {
		return err
	}
	if err := nameMissing(ctx, kept, dir, s.claim.auditBytes(), s.Log); err != nil {
		return err
	}
	quota := records.NewQuota(s.db)
	uploads := files.New(s.db, kept, quota, s.MaxFile)

	s.keys = access.OpenKeys(s.db)
	meter := access.NewMeter(s.db)
	door := access.Door{Keys: s.keys, Meter: meter, Open: s.Open}
	measured := newMetrics(s.Version)
	s.audit.Noted = measured.noted
	s.manager = runs.New(runs.Options{
		Engine: s.engine, Profiles: s.Profiles, DB: s.db, Keys: s.keys, Meter: meter,
		Contents: kept, Dir: dir, AtOnce: s.AtOnce, Queue: s.Queue, Inputs: s.Inputs,
		MaxContext: s.MaxContext, Log: s.Log, Charged: measured.charged, Ended: measured.ended,
	})
	s.kept, err = sessions.New(ctx, sessions.Options{
		Engine: s.engine, DB: s.db, Contents: kept, Quota: quota, Terms: s.terms,
		AtMost: s.Sessions, Open: s.OpenSessions, Inputs: s.Inputs, MaxContext: s.MaxContext, Log: s.Log,
		SaveAfter: s.Rest, Ran: measured.ran, Unsavable: measured.unsavable,
	})
	if err != nil {
		return err
	}
	measured.watch(s.manager, s.kept)
	for _, tier := range s.engine.Tiers() {
		if inWorkers, is := tier.(workers.Tier); is {
			measured.watchWorkers(inWorkers)
			break
		}
	}

	mux := &routes{ServeMux: http.NewServeMux()}
	chat := openai.New(openai.Options{
		Runs: s.manager, Files: uploads, Quota: quota, DB: s.db, Long: s.Long, Log: s.Log,
	}, mux)
	anthropic.New(anthropic.Options{Chat: chat, Log: s.Log}, mux)
	s.Document = native.New(native.Options{
		Runs: s.manager, Sessions: s.kept, Files: uploads, Meter: meter, Door: &door, Audit: s.audit,
		Version: s.Version, MaxBody: s.MaxBody, Log: s.Log,
	}, mux)
	if s.mcp = s.endpoint; s.MCP {
		s.mcp = s.newMCPEndpoint(uploads)
	}
	if s.mcp != nil {
		mux.Handle("/mcp", s.mcp)
	}
	views.AddTo(mux, s.manager, s.Log)
	s.addOperation(mux, measured)
	s.patterns = mux.patterns
	s.handler = tidyPaths(gate.New(gate.Options{
		Door: door, Audit: s.audit, Hosts: s.Hosts,
		Origins: s.Origins, MaxBody: s.MaxBody, LargePath: "/v1/files", MaxLarge: s.MaxFile + maxForm,
		Requests: requestsOf(s.Connections),
		Public:   append(views.Page(), "/healthz", "/readyz"), Log: s.Log, Seen: measured.seen, Fail: writeError,
	}, mux))
	return nil
}

// terms returns the terms for the sessions of a profile.
func (s *Server) terms(profile string) (sessions.Terms, error) {
	p, err := s.manager.Profile(profile)
	if err != nil {
		return sessions.Terms{}, err
	}

	cfg := &p.Task.Config
	return sessions.Terms{
		Profile: p.Name, Limits: cfg.Limits, Policy: p.Task.Policy, Deterministic: cfg.Deterministic,
		Durability: p.Durability,
	}, nil
}

// addOperation adds the routes that operators use.
func (s *Server) addOperation(mux *routes, measured *metrics) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.ready(r.Context()); err != nil {
			failures.Write(w, err)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})

	shown := measured.handler()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if err := access.Need(r.Context(), access.Metrics); err != nil {
			failures.Write(w, err)
			return
		}
		shown.ServeHTTP(w, r)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		mux.missing(w, r)
	})
}

// ready returns an error while no run can begin or no data can be stored.
func (s *Server) ready(ctx context.Context) error {
	if s.draining.Load() {
		return problem.New(http.StatusServiceUnavailable, "draining", "the server is stopping")
	}
	if err := s.db.PingContext(ctx); err != nil {
		s.Log.Error("the database does not answer", "error", err)
		return problem.New(http.StatusServiceUnavailable, "no_database", "the database does not answer")
	}
	return s.disk.check(s.Log.Error)
}

// foreign contains the paths of OpenAI's wire protocol.
var foreign = []string{
	"/v1/chat/", "/v1/responses", "/v1/models", "/v1/files", "/v1/conversations", "/v1/embeddings",
}

func isOpenAI(path string) bool {
	return slices.ContainsFunc(foreign, func(start string) bool { return strings.HasPrefix(path, start) })
}

// writeError writes an error in the format of the path's wire protocol.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case strings.HasPrefix(r.URL.Path, anthropic.Path):
		anthropic.WriteError(w, r, err)
		return
	case isOpenAI(r.URL.Path):
		openai.WriteError(w, err)
		return
	}
	failures.Write(w, err)
}

// ServeHTTP answers a request. Mount it at the root of a host.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Check checks the server's options.
func (s *Server) Check(ctx context.Context) error { return s.Options.Check(ctx, s.engine) }

// HasKeys reports whether the server has a valid key.
func (s *Server) HasKeys(ctx context.Context) (bool, error) { return s.keys.Any(ctx) }

// Recover continues the runs that an earlier process left unfinished.
func (s *Server) Recover(ctx context.Context) error { return s.manager.Recover(ctx) }

// maxForm bounds the parts of a form besides the file, in bytes.
const maxForm = 1 << 20

// Limits on connections.
const (
	headerTime  = 10 * time.Second
	headerBytes = 32 << 10
	idleTime    = 2 * time.Minute
	longest     = 24 * time.Hour // maximum time of an answer; package gate has limits for its parts
)

// Serve serves until the context ends, with TLS if secure is set. Then it gives runs and snippets
// the time drain to finish, and interrupts the rest.
func (s *Server) Serve(ctx context.Context, l net.Listener, secure *tls.Config, drain time.Duration) error {
	l = newCrowd(l, s.Connections)
	web := &http.Server{
		Handler: keepBusy(s.handler), ConnContext: withGuest,
		ReadHeaderTimeout: headerTime, MaxHeaderBytes: headerBytes, IdleTimeout: idleTime,
		WriteTimeout: longest, TLSConfig: secure, ErrorLog: log.New(logWriter{s.Log}, "", 0),
	}
	ended := make(chan error, 1)
	go func() {
		if secure != nil {
			ended <- web.ServeTLS(l, "", "")
			return
		}
		ended <- web.Serve(l)
	}()

	tending, stop := context.WithCancel(ctx)
	var tended sync.WaitGroup
	tended.Go(func() { s.tend(tending) })
	defer tended.Wait()
	defer stop()
	select {
	case err := <-ended:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	return s.stop(web, drain)
}

// These are the intervals at which a server checks for decisions of other processes and for expired
// runs.
const (
	wakeEvery   = 2 * time.Second
	expireEvery = 10 * time.Minute
)

// tend does the periodic work of the server until the context ends.
func (s *Server) tend(ctx context.Context) {
	ticker := time.NewTicker(wakeEvery)
	defer ticker.Stop()
	for expire := time.Now(); ; {
		err := s.manager.Wake(ctx)
		if now := time.Now(); err == nil && s.Keep > 0 && now.After(expire) {
			expire = now.Add(expireEvery)
			err = s.manager.Expire(ctx, now.Add(-s.Keep))
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Error("cannot look after the runs", "error", err)
		}

		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// stop drains the server. Active requests are still answered; new ones are refused.
func (s *Server) stop(web *http.Server, drain time.Duration) error {
	s.draining.Store(true)
	s.Log.Info("draining", "longest", drain)
	limited, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { s.manager.Drain(limited) })
	both.Go(func() { s.kept.Drain(limited) })
	both.Wait()

	if err := s.closeMCP(); err != nil {
		s.Log.Warn("sandboxes of MCP clients did not end well", "error", err)
	}

	// Only unfinished answers and streams of ended runs remain.
	limited, cancel = context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := web.Shutdown(limited); err != nil {
		return web.Close()
	}
	return nil
}

// closeMCP ends everything that MCP clients opened, once.
func (s *Server) closeMCP() error {
	mcp := s.mcp
	if s.mcp = nil; mcp == nil {
		return nil
	}

	return mcp.Close()
}

// Close closes everything that the server opened. It does not close the engine.
func (s *Server) Close() error {
	errs := []error{s.closeMCP()}
	if s.kept != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		s.kept.Drain(ended)
	}

	if s.audit != nil {
		errs = append(errs, s.audit.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(append(errs, s.claim.Close())...)
}

// logWriter logs the messages of net/http, which concern broken connections.
type logWriter struct{ log *slog.Logger }

// Write implements [io.Writer].
func (w logWriter) Write(line []byte) (int, error) {
	w.log.Debug(strings.TrimSpace(string(line)))
	return len(line), nil
}
