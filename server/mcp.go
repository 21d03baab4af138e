package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/mcp"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/files"
	"github.com/rlmhq/rlm/server/internal/native"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// Limits on the objects that a key can keep over MCP.
const (
	mcpHandles = 16
	mcpIdle    = time.Hour
)

// mcpEndpoint serves MCP at /mcp of rlm serve. Each key has its own server, so its connections,
// handles, tasks and records are invisible to other keys.
type mcpEndpoint struct {
	*Server
	profile *Profile
	files   *files.Files
	places  *mcp.Places

	mu     sync.Mutex
	byKey  map[string]*mcpOfKey
	closed bool
}

// mcpOfKey is the server of a key.
type mcpOfKey struct {
	server  *mcp.Server
	handler http.Handler
}

// newMCPEndpoint makes the endpoint. Its sessions and runs use the profile default, or the first
// profile if there is no default.
func (s *Server) newMCPEndpoint(uploads *files.Files) *mcpEndpoint {
	profile := &s.Profiles[0]
	for i := range s.Profiles {
		if s.Profiles[i].Name == runs.DefaultProfile {
			profile = &s.Profiles[i]
		}
	}
	return &mcpEndpoint{
		Server: s, profile: profile, files: uploads,
		places: mcp.NewPlaces(s.OpenSessions, access.Share),
		byKey:  map[string]*mcpOfKey{},
	}
}

// ServeHTTP implements [http.Handler]. The gate has checked host, origin and key.
func (m *mcpEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := access.Need(r.Context(), access.Run)
	var own *mcpOfKey
	if err == nil {
		own, err = m.of(access.Caller(r.Context()))
	}
	if err != nil {
		failures.Write(w, err)
		return
	}
	own.handler.ServeHTTP(w, r)
}

// of returns the server of a key.
func (m *mcpEndpoint) of(k access.Key) (*mcpOfKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, problem.Later(http.StatusServiceUnavailable, "draining", 10*time.Second,
			"the server is stopping: try again")
	}
	if own := m.byKey[k.ID]; own != nil {
		return own, nil
	}

	s, err := mcp.New(m.configure(k))
	if err != nil {
		return nil, err
	}
	own := &mcpOfKey{s, s.Handler()}
	m.byKey[k.ID] = own
	return own, nil
}

// Close ends all connections, tasks and sandboxes.
func (m *mcpEndpoint) Close() error {
	m.mu.Lock()
	m.closed = true
	all := m.byKey
	m.byKey = nil
	m.mu.Unlock()

	var errs []error
	for _, own := range all {
		errs = append(errs, own.server.Close())
	}
	return errors.Join(errs...)
}

// configure returns the configuration of a key's server.
func (m *mcpEndpoint) configure(k access.Key) mcp.Config {
	task := &m.profile.Task
	functions := ""
	if task.Config.Tools != nil {
		list, notes := task.Config.Tools.Prompt()
		functions = strings.TrimSpace(list + "\n\n" + notes)
	}
	cfg := mcp.Config{
		Version: m.Version, Detect: m.engine.Detect, Functions: functions, Servers: m.Servers,
		Open: func(ctx context.Context, more []rlm.Context, _ func(ledger.Event)) (*rlm.Session, error) {
			cfg := rlm.SessionConfig{
				Contexts: more, Policy: task.Policy, Limits: task.Config.Limits, Out: true,
				Deterministic: task.Config.Deterministic,
				Labels:        map[string]string{"tenant": k.Tenant, "profile": m.profile.Name},
			}
			cfg.Ask.Tools, cfg.Ask.Approve = task.Config.Tools, task.Config.Approve // no model: runs ask
			return m.openLoaded(ctx, cfg)
		},
		Read: func(ctx context.Context, id string) (mcp.Given, error) { return m.read(ctx, &k, id) },
		PathHelp: "Paths are the IDs of files that were uploaded with POST /v1/files, " +
			"such as file-abc.",
		Asks: m.profile.HasModel(),
		Record: func(ctx context.Context, id string) (json.RawMessage, error) {
			return m.record(ctx, &k, id)
		},
		Work: func(ctx context.Context, work func(context.Context) error) error {
			return m.manager.Work(ctx, k, work)
		},
		Note: func(request, method, object, outcome string) {
			if err := m.audit.Note(&k, request, "mcp "+method, object, outcome); err != nil {
				m.Log.Error("cannot write the audit log", "error", err)
			}
		},
		NoQuestions: !k.May(access.Approve), IsGuarded: true,
		Handles: mcpHandles, Places: m.places, Tenant: k.Tenant, Idle: mcpIdle,
		ToolCalls: task.Config.Budget.WithDefaults().ToolCalls, Log: m.Log,
	}
	if m.profile.HasModel() {
		cfg.Answer = func(
			ctx context.Context, question string, given []mcp.Given, progress func(ledger.Event),
		) (mcp.Answer, error) {
			return m.answer(ctx, k, question, given, progress)
		}
	}
	return cfg
}

// openLoaded opens a session and prepares it.
func (m *mcpEndpoint) openLoaded(
	ctx context.Context, cfg rlm.SessionConfig,
) (*rlm.Session, error) {
	session, err := m.engine.Open(ctx, cfg)
	if err != nil || m.Load == nil {
		return session, err
	}
	if err := m.Load(ctx, session); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return session, nil
}

// read opens an uploaded file of the tenant.
func (m *mcpEndpoint) read(ctx context.Context, k *access.Key, id string) (given mcp.Given, err error) {
	known, err := m.files.Get(ctx, k.Tenant, id)
	if err != nil {
		return given, err
	}
	file, err := m.files.Open(ctx, known.ID)
	if err != nil {
		return given, err
	}
	return mcp.Given{
		Name:    known.Name,
		Path:    m.files.Path(known.ID),
		Context: inputs.Stream(m.Inputs, known.Name, file, m.MaxContext),
		Close:   func() { _ = file.Close() }, // the file was only read
	}, nil
}

// answer answers a question with a run of the key.
func (m *mcpEndpoint) answer(
	ctx context.Context, k access.Key, question string, given []mcp.Given, progress func(ledger.Event),
) (out mcp.Answer, err error) {
	request := runs.Request{Spec: runs.Spec{Profile: m.profile.Name, Question: question}}
	for _, one := range given {
		request.Contents = append(request.Contents, runs.Content{Name: one.Name, Text: one.Text, Path: one.Path})
	}
	record, err := m.manager.Start(ctx, k, request)
	if err != nil {
		return out, err
	}
	defer context.AfterFunc(ctx, func() {
		_ = m.manager.Cancel(context.WithoutCancel(ctx), k.Tenant, record.ID) // the client has gone away
	})()

	err = m.manager.Follow(ctx, k.Tenant, record.ID, 0, func(_ int64, line []byte) error {
		var e ledger.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		progress(e)
		return nil
	}, func() error { return nil })
	if err == nil {
		record, err = m.manager.Wait(ctx, k.Tenant, record.ID)
	}
	if err != nil {
		return out, err
	}

	o := &record.Outcome
	out = mcp.Answer{
		Run: record.ID, Status: record.Status, Partial: o.Partial, Reason: record.Reason, Turns: o.Turns,
		Spent: record.Charged,
	}
	if o.Answer != nil {
		out.Answer = o.Answer
	}
	if record.Status == string(ledger.StatusParked) {
		out.Reason += fmt.Sprintf("; decide with POST /v1/runs/%s/approvals, and read rlm://runs/%s",
			record.ID, record.ID)
	}
	return out, nil
}

// record returns the record of a run that belongs to the key's tenant, or nil if there is none.
func (m *mcpEndpoint) record(ctx context.Context, k *access.Key, id string) (json.RawMessage, error) {
	if err := access.Need(access.With(ctx, *k), access.Read); err != nil {
		return nil, err
	}
	record, err := m.manager.Get(ctx, k.Tenant, id)
	if err != nil {
		if failures.Of(err).Status == http.StatusNotFound {
			err = nil
		}
		return nil, err
	}
	return native.Encode(&record)
}
