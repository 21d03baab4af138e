package connect

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/server/internal/terms"
	"github.com/rlmhq/rlm/tiers"
)

// entry is an open session of a client.
type entry struct {
	id      string
	session *rlm.Session
	kept    Kept   // nil for an unnamed session
	release func() // frees its place; nil if it has none

	using sync.Mutex  // held by the active request
	lost  *tiers.Loss // not reported yet, from a request without a result; guarded by using
	// enforced is the enforcement of limits that was last reported to the client; guarded by using.
	enforced []tiers.Enforcement

	mu     sync.Mutex
	cancel context.CancelCauseFunc // cancels the active request; nil if there is none
}

// errInterrupted is the error of a request that session/interrupt or session/close stopped.
var errInterrupted = errors.New("interrupted")

// entryKey is the key of the entry in the context of its requests.
type entryKey struct{}

// claim reserves the session for a request until leave is called.
func (e *entry) claim(ctx context.Context) (_ context.Context, leave func(), err error) {
	if !e.using.TryLock() {
		return nil, nil, rlm.ErrInUse
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, entryKey{}, e))
	e.setCancel(cancel)
	return ctx, func() {
		e.setCancel(nil)
		cancel(nil)
		e.using.Unlock()
	}, nil
}

// enter prepares the session for the request that claimed it, until leave is called. It may need to
// wake a named session.
func (e *entry) enter(ctx context.Context) (_ context.Context, leave func() error, err error) {
	if e.kept == nil {
		return ctx, func() error { return nil }, nil
	}
	ctx, session, leave, err := e.kept.Enter(ctx)
	e.session = session
	return ctx, leave, err
}

// close ends the session, or the hold on it. No request is active.
func (e *entry) close() error {
	if e.kept != nil {
		return e.kept.Release()
	}
	err := e.session.Close()
	if e.release != nil {
		e.release()
	}
	return err
}

func (e *entry) setCancel(cancel context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancel = cancel
}

// stop interrupts the active request, if any.
func (e *entry) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		e.cancel(errInterrupted)
	}
}

// adopt registers an entry and returns its ID. If it fails, it closes the entry.
func (s *server) adopt(e *entry) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= maxSessions {
		err := fmt.Errorf("%w: %d sessions are open: close some", rlm.ErrBusy, maxSessions)
		return "", errors.Join(err, e.close())
	}
	s.last++
	e.id = fmt.Sprint(s.last)
	s.sessions[e.id] = e
	return e.id, nil
}

// openOne opens an unnamed session, within the client's bounds.
func (s *server) openOne(open func() (*rlm.Session, error)) (*entry, error) {
	e := &entry{}
	var err error
	if s.options.Reserve != nil {
		if e.release, err = s.options.Reserve(); err != nil {
			return nil, err
		}
	}
	if e.session, err = open(); err != nil && e.release != nil {
		e.release()
	}
	return e, err
}

func (s *server) find(id string) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.sessions[id]; ok {
		return e, nil
	}
	return nil, jsonrpc.NewError(jsonrpc.CodeInvalidParams, details{Kind: kindUnknownSession},
		"there is no session %.40q", id)
}

type (
	openParams struct {
		Name          string               `json:"name,omitempty" jsonschema:"keep the session beyond the connection"`
		Contexts      list[contextParams]  `json:"contexts,omitempty"`
		Functions     list[functionParams] `json:"functions,omitempty"`
		Limits        terms.Limits         `json:"limits,omitzero"`
		Policy        terms.Policy         `json:"policy,omitzero"`
		Deterministic bool                 `json:"deterministic,omitempty"`
		Out           bool                 `json:"out,omitempty" jsonschema:"give snippets the folder /out"`
		Durability    string               `json:"durability,omitempty" jsonschema:"of a named session: kept or idle"`
	}
	openResult struct {
		Session string   `json:"session"`
		Notes   []string `json:"notes,omitempty" jsonschema:"what snippets do not see of the contexts as it is"`
	}
)

func (s *server) open(ctx context.Context, p *openParams) (*openResult, error) {
	if p.Name != "" {
		return s.hold(ctx, p)
	}
	if p.Durability != "" {
		return nil, invalid("durability is for a session with a name: without one, it ends with the connection")
	}
	cfg, err := s.configure(p)
	if err != nil {
		return nil, err
	}
	e, err := s.openOne(func() (*rlm.Session, error) { return s.engine.Open(ctx, cfg) })
	if err != nil {
		return nil, err
	}

	notes, err := e.session.CheckContexts(ctx)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	id, err := s.adopt(e)
	return &openResult{id, notes}, err
}

// hold opens a named session, which the connection holds.
func (s *server) hold(ctx context.Context, p *openParams) (*openResult, error) {
	if s.options.Keeper == nil {
		return nil, invalid("this connection keeps no sessions: omit the name, or connect to rlm serve")
	}
	functions, err := s.makeFunctions(p.Functions)
	if err != nil {
		return nil, err
	}
	contexts, err := keptContexts(p.Contexts)
	if err != nil {
		return nil, err
	}

	kept, notes, err := s.options.Keeper.Hold(ctx, &KeptRequest{
		Name: p.Name, Contexts: contexts, Functions: functions, Limits: p.Limits, Policy: p.Policy,
		Deterministic: p.Deterministic, Out: p.Out, Durability: p.Durability,
	})
	if err != nil {
		return nil, err
	}
	id, err := s.adopt(&entry{kept: kept})
	return &openResult{id, notes}, err
}

// configure checks a client's request for a session, and returns the configuration.
func (s *server) configure(p *openParams) (cfg rlm.SessionConfig, err error) {
	cfg.Deterministic, cfg.Out = s.options.Deterministic || p.Deterministic, p.Out
	cfg.Labels = s.options.Labels
	if cfg.Contexts, err = s.makeContexts(p.Contexts); err != nil {
		return cfg, err
	}
	if cfg.Functions, err = s.makeFunctions(p.Functions); err != nil {
		return cfg, err
	}
	within := p.Limits.Within
	if s.options.MayRaise {
		within = p.Limits.Replace
	}
	if cfg.Limits, err = within(s.options.Limits); err == nil {
		cfg.Policy, err = p.Policy.Narrow(s.options.Policy, s.engine.Tiers())
	}
	if err != nil {
		return cfg, invalid("%v", err)
	}
	return cfg, nil
}

// close ends a session and whatever it is running.
func (s *server) close(_ context.Context, p *ofOne) (func() (*none, error), error) {
	e, err := s.find(p.Session)
	if err != nil {
		return nil, err
	}

	s.mu.Lock()
	delete(s.sessions, p.Session)
	s.mu.Unlock()
	e.stop()

	return func() (*none, error) {
		e.using.Lock() // waits for the request that was stopped
		defer e.using.Unlock()
		return &none{}, e.close()
	}, nil
}

func (s *server) interrupt(_ context.Context, p *ofOne) (*none, error) {
	e, err := s.find(p.Session)
	if err != nil {
		return nil, err
	}
	e.stop()
	return &none{}, nil
}

type forkResult struct {
	Session string `json:"session"`
}

func (s *server) fork(ctx context.Context, e *entry, _ ofOne) (*forkResult, error) {
	fork, err := s.openOne(func() (*rlm.Session, error) { return e.session.Fork(ctx) })
	if err != nil {
		return nil, err
	}
	fork.lost = e.lost
	id, err := s.adopt(fork)
	return &forkResult{id}, err
}

type addParams struct {
	ofOne
	Contexts  list[contextParams]  `json:"contexts,omitempty"`
	Functions list[functionParams] `json:"functions,omitempty"`
}

// add adds functions and contexts for later snippets.
func (s *server) add(ctx context.Context, e *entry, p addParams) (*none, error) {
	contexts, err := s.makeContexts(p.Contexts)
	if err != nil {
		return nil, err
	}
	functions, err := s.makeFunctions(p.Functions)
	if err != nil {
		return nil, err
	}

	if len(functions) > 0 {
		if err := e.session.AddFunctions(ctx, functions...); err != nil {
			return nil, err
		}
	}
	switch {
	case len(contexts) == 0:
	case e.kept != nil:
		list, err := keptContexts(p.Contexts)
		if err != nil {
			return nil, err
		}
		return &none{}, e.kept.Add(ctx, list)
	default:
		return &none{}, e.session.AddContext(ctx, contexts...)
	}
	return &none{}, nil
}

type (
	variable struct {
		Name string `json:"name"`
		Kind string `json:"kind" jsonschema:"the type, with the length of a collection"`
	}
	variablesResult struct {
		Variables []variable `json:"variables"`
	}
)

func (s *server) variables(_ context.Context, e *entry, _ ofOne) (*variablesResult, error) {
	result := &variablesResult{Variables: []variable{}}
	for _, v := range e.session.Variables() {
		result.Variables = append(result.Variables, variable(v))
	}
	return result, nil
}
