package connect

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/jsonrpc"
)

// entry is an open session of a client.
type entry struct {
	id      string
	session *rlm.Session

	using sync.Mutex // held by the request that runs

	mu     sync.Mutex
	cancel context.CancelCauseFunc // of that request, nil for none
}

// errInterrupted ends a request that session/interrupt or session/close has stopped.
var errInterrupted = errors.New("interrupted")

// entryKey is the key of the entry in the context of its requests.
type entryKey struct{}

// enter begins a request that has the session to itself, until leave is called.
func (e *entry) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
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

func (e *entry) setCancel(cancel context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancel = cancel
}

// stop interrupts the request that runs, if there is one.
func (e *entry) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		e.cancel(errInterrupted)
	}
}

// adopt gives an open session its name. After an error, the session is closed.
func (s *server) adopt(session *rlm.Session) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= maxSessions {
		err := fmt.Errorf("%w: %d sessions are open: close some", rlm.ErrBusy, maxSessions)
		return "", errors.Join(err, session.Close())
	}

	s.last++
	id := fmt.Sprint(s.last)
	s.sessions[id] = &entry{id: id, session: session}
	return id, nil
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
		Contexts      []contextParams  `json:"contexts,omitempty"`
		Functions     []functionParams `json:"functions,omitempty"`
		Limits        limits           `json:"limits,omitzero"`
		Policy        policyParams     `json:"policy,omitzero"`
		Deterministic bool             `json:"deterministic,omitempty"`
		Out           bool             `json:"out,omitempty" jsonschema:"give snippets the folder /out"`
	}
	openResult struct {
		Session string   `json:"session"`
		Notes   []string `json:"notes,omitempty" jsonschema:"what snippets do not see of the contexts as it is"`
	}
)

func (s *server) open(ctx context.Context, p *openParams) (*openResult, error) {
	cfg, err := s.configure(p)
	if err != nil {
		return nil, err
	}

	session, err := s.engine.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	notes, err := session.CheckContexts(ctx)
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}

	id, err := s.adopt(session)
	return &openResult{id, notes}, err
}

// configure checks what a client asks for.
func (s *server) configure(p *openParams) (cfg rlm.SessionConfig, err error) {
	cfg.Deterministic, cfg.Out = s.options.Deterministic || p.Deterministic, p.Out
	if cfg.Contexts, err = s.makeContexts(p.Contexts); err != nil {
		return cfg, err
	}
	if cfg.Functions, err = s.makeFunctions(p.Functions); err != nil {
		return cfg, err
	}
	if cfg.Limits, err = p.Limits.replace(s.options.Limits); err != nil {
		return cfg, err
	}
	cfg.Policy, err = s.narrow(p.Policy)
	return cfg, err
}

// close ends a session, and what it runs.
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
		e.using.Lock() // after the request that was stopped
		defer e.using.Unlock()
		return &none{}, e.session.Close()
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
	fork, err := e.session.Fork(ctx)
	if err != nil {
		return nil, err
	}
	id, err := s.adopt(fork)
	return &forkResult{id}, err
}

type addParams struct {
	ofOne
	Contexts  []contextParams  `json:"contexts,omitempty"`
	Functions []functionParams `json:"functions,omitempty"`
}

// add adds functions and contexts for the next snippets.
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
	if len(contexts) > 0 {
		if err := e.session.AddContext(ctx, contexts...); err != nil {
			return nil, err
		}
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
