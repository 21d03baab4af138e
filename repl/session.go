package repl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/protocol"
	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Opener makes what runs a session's snippets. The context bounds the opening
// alone. An engine of the root package has one for each policy.
type Opener func(ctx context.Context, cfg tiers.Config) (*router.Runner, error)

// SessionConfig says what a session has.
type SessionConfig struct {
	// Open makes the runner.
	Open Opener
	// Inputs are what snippets find as context, context_1 and so on. The caller
	// keeps them open as long as the session lives.
	Inputs []tiers.Input
	// Tools answer host calls. Nil is none.
	Tools *Tools
	// Limits bound each snippet. A zero Output is 1 MiB here: what is beyond the
	// feedback's cap is kept for the snippets.
	Limits tiers.Limits
	// Deterministic makes clocks and randomness the same in every run.
	Deterministic bool
}

// DefaultOutput is how many bytes of a snippet's output a session keeps.
const DefaultOutput = 1 << 20

// Session is the namespace of one loop: it runs snippets, knows the variables
// they made, and hands them what the host keeps for them. It has one owner; only
// host calls arrive from other goroutines.
type Session struct {
	runner *router.Runner
	tools  *Tools

	mu    sync.Mutex
	stash map[string]tiers.Value
	calls []ledger.SubCall
	muted bool

	variables map[string]string // name to kind, as the guest last told
}

// keeper is the host function by which a snippet fetches a value that the host
// keeps for it. Only the session's own snippets need it.
const keeper = protocol.Stash

// OpenSession starts a session. No sandbox is opened before its first snippet.
func OpenSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	if cfg.Open == nil {
		return nil, errors.New("cannot open a session: there is no Opener")
	}
	if cfg.Limits.Output == 0 {
		cfg.Limits.Output = DefaultOutput
	}

	s := &Session{tools: cfg.Tools, stash: map[string]tiers.Value{}}
	functions := []tiers.Function{{Name: keeper, Doc: "What the host keeps for a variable."}}
	if cfg.Tools != nil {
		functions = append(functions, cfg.Tools.Functions()...)
	}
	runner, err := cfg.Open(ctx, tiers.Config{
		Host: tiers.HostFunc(s.call), Functions: functions, Inputs: cfg.Inputs,
		Limits: cfg.Limits, Deterministic: cfg.Deterministic,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open a session: %w", err)
	}
	s.runner = runner
	return s, nil
}

// call answers a host call: the session's own or a tool's.
func (s *Session) call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	if call.Function != keeper {
		s.mu.Lock()
		muted := s.muted
		s.mu.Unlock()
		if s.tools == nil || muted {
			return nil, fmt.Errorf("this session has no function %q", call.Function)
		}
		return s.tools.Call(calls.WithRecorder(ctx, s.record), call)
	}

	var name string
	if len(call.Args) != 1 || json.Unmarshal(call.Args[0], &name) != nil {
		return nil, errors.New("cannot tell which variable is meant")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.stash[name]
	if !ok {
		return nil, fmt.Errorf("nothing is kept for %q", name)
	}

	return value, nil
}

// RefuseCalls ends the host calls: what runs from now on reaches nobody, and costs nothing.
func (s *Session) RefuseCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = true
}

// record takes down a sub-call of the snippet that runs, as its record shows it:
// thousands of them, each with a part of the input, would be a second copy of that.
func (s *Session) record(c ledger.SubCall) {
	for _, text := range []*string{&c.Prompt, &c.Question, &c.Response} {
		*text = texts.Truncate(*text, record.MaxText)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// Run runs one piece of code. An error says that no tier may run it or that one
// broke; Ran is then as far as it came.
func (s *Session) Run(ctx context.Context, b Block) (ledger.Snippet, error) {
	s.mu.Lock()
	s.calls = nil
	s.mu.Unlock()
	begun := time.Now()
	result, err := s.runner.Run(ctx, tiers.Job{Language: b.Language, Source: b.Source})
	ran := ledger.Snippet{
		Language: b.Language,
		Source:   b.Source,
		Result:   result,
		Elapsed:  time.Since(begun),
	}

	s.mu.Lock()
	ran.Calls = s.calls
	s.mu.Unlock()
	if result.Variables != nil {
		ran.New = s.learn(result.Variables)
	}

	return ran, err
}

// learn takes the guest's word on its variables and returns the new ones.
func (s *Session) learn(list []tiers.Variable) []string {
	var fresh []string
	now := make(map[string]string, len(list))
	for _, v := range list {
		now[v.Name] = v.Kind
		if _, old := s.variables[v.Name]; !old {
			fresh = append(fresh, v.Name)
		}
	}

	s.variables = now
	return fresh
}

// Variables are the names and kinds of the snippets' variables, as they were when
// a snippet last ended in order.
func (s *Session) Variables() map[string]string { return s.variables }

// Assign binds a variable of the session to a Go value, by way of its JSON.
func (s *Session) Assign(ctx context.Context, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot assign %s: %w", name, err)
	}
	s.mu.Lock()
	s.stash[name] = data
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.stash, name)
		s.mu.Unlock()
	}()

	source := fmt.Sprintf("%s = %s(%q)", name, keeper, name)
	result, err := s.runner.Run(ctx, tiers.Job{Source: source})
	if err != nil {
		return fmt.Errorf("cannot assign %s: %w", name, err)
	}
	if result.Status != tiers.StatusOK {
		return fmt.Errorf("cannot assign %s: the snippet ended as %s", name, result.Status)
	}

	return nil
}

// Home is the tier in which the session's Python lives, empty before the first
// snippet.
func (s *Session) Home() string { return s.runner.Home(tiers.Python) }

// Close ends the session.
func (s *Session) Close() error { return s.runner.Close() }

// Block is a piece of code in a reply.
type Block struct {
	// Language is what runs it.
	Language tiers.Language
	// Source is the code as the model wrote it.
	Source string
}
