// Package loopsession runs the code of one loop, in its own session.
package loopsession

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// Config configures one session.
type Config struct {
	// Open makes the runner.
	Open repl.Opener
	// Inputs are the variables context, context_1 and so on. The caller keeps them open
	// until the session is closed.
	Inputs []tiers.Input
	// Tools answer host calls. Nil means no tools.
	Tools *repl.Tools
	// Approve decides on each tool call: see run.Config. Nil allows all.
	Approve func(ctx context.Context, call tiers.Call) error
	// Ledger counts tool calls, and Tell reports them. A nil Ledger counts none.
	Ledger *calls.Ledger
	Tell   func(ledger.Event)
	// Variables are values that Python snippets find under these names. A snippet may rebind a
	// name, and the new value persists. A tool of the same name takes precedence.
	Variables map[string]tiers.Value
	// Limits bound each snippet. A zero Output means [repl.DefaultOutput]: the session keeps
	// output beyond the feedback's cap for later snippets.
	Limits tiers.Limits
	// Deterministic makes clocks and randomness the same in every run.
	Deterministic bool
	// Out provides the folder [tiers.OutFolder] to snippets: see [Session.Collect].
	Out bool
}

// Session is the namespace of one loop. It runs snippets, tracks their variables, and passes
// them values from the host. It has one owner; only host calls arrive from other goroutines.
type Session struct {
	runner repl.Runner
	tools  *repl.Tools
	// approve is Approve of the Config.
	approve func(ctx context.Context, call tiers.Call) error
	account *account

	mu    sync.Mutex
	stash map[string]tiers.Value
	calls []ledger.SubCall
	muted bool

	variables map[string]string // name to kind, as last reported by the guest
}

// stashFunction is the host function with which a snippet fetches a value from the host. Only the
// session's own snippets call it.
const stashFunction = protocol.Stash

// Open starts a session. The first snippet opens the sandbox.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	if cfg.Open == nil {
		return nil, errors.New("cannot open a session: set an Opener")
	}
	if cfg.Limits.Output == 0 {
		cfg.Limits.Output = repl.DefaultOutput
	}

	if cfg.Approve == nil {
		cfg.Approve = func(context.Context, tiers.Call) error { return nil }
	}

	s := &Session{tools: cfg.Tools, approve: cfg.Approve, stash: map[string]tiers.Value{}}
	functions := []tiers.Function{{Name: stashFunction, Doc: "What the host keeps for a variable."}}
	if cfg.Tools != nil {
		functions = append(functions, cfg.Tools.Functions()...)
	}
	s.account = newAccount(&cfg, functions)
	for _, name := range slices.Sorted(maps.Keys(cfg.Variables)) {
		if isTool(functions, name) {
			continue
		}
		functions = append(functions, tiers.Function{Name: name, Value: cfg.Variables[name]})
	}
	runner, err := cfg.Open(ctx, tiers.Config{
		Host: tiers.HostFunc(s.call), Functions: functions, Inputs: cfg.Inputs,
		Limits: cfg.Limits, Deterministic: cfg.Deterministic, Out: cfg.Out,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open a session: %w", err)
	}
	s.runner = runner
	return s, nil
}

func isTool(functions []tiers.Function, name string) bool {
	return slices.ContainsFunc(functions, func(f tiers.Function) bool { return f.Name == name })
}

// call answers a host call, with the session's own function or a tool.
func (s *Session) call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	if call.Function != stashFunction {
		s.mu.Lock()
		muted := s.muted
		s.mu.Unlock()

		if s.tools == nil || muted {
			return nil, fmt.Errorf("this session has no function %q", call.Function)
		}
		return s.callTool(calls.WithRecorder(ctx, s.noteCall), call)
	}

	var name string
	if len(call.Args) != 1 || json.Unmarshal(call.Args[0], &name) != nil {
		return nil, errors.New("the variable name is missing or invalid")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.stash[name]
	if !ok {
		return nil, fmt.Errorf("no value is stored for the variable %q", name)
	}

	return value, nil
}

// noteCall records a sub-call of the running snippet, truncated, because thousands of sub-calls
// with a part of the input each would be a second copy of the input.
func (s *Session) noteCall(c ledger.SubCall) {
	for _, text := range []*string{&c.Prompt, &c.Question, &c.Response} {
		*text = texts.Truncate(*text, record.MaxText)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// Run runs one piece of code. An error means that no tier may run it or that a tier broke; the
// Snippet then holds the events before that.
func (s *Session) Run(ctx context.Context, b Block) (ledger.Snippet, error) {
	s.mu.Lock()
	s.calls, s.muted = nil, b.WithoutCalls
	s.mu.Unlock()

	begun := time.Now()
	ctx = runlog.AtNext(ctx, "snippet")
	start, err := runlog.StartSnippet(ctx)
	if err != nil {
		return ledger.Snippet{Language: b.Language, Source: b.Source}, err
	}
	job := tiers.Job{Language: b.Language, Source: b.Source, Seed: start.Seed, Began: start.Time}
	result, err := s.runner.Run(ctx, job)
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
		ran.New = s.updateVariables(result.Variables)
	}
	return ran, err
}

// updateVariables replaces the known variables with the guest's and returns the new names.
func (s *Session) updateVariables(list []tiers.Variable) []string {
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

// Variables returns the kinds of the snippets' variables by name, as of the last snippet that
// ended normally.
func (s *Session) Variables() map[string]string { return s.variables }

// Assign sets a variable of the session to the JSON of a Go value.
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

	source := fmt.Sprintf("%s = %s(%q)", name, stashFunction, name)
	result, err := s.runner.Run(ctx, tiers.Job{Source: source})
	if err != nil {
		return fmt.Errorf("cannot assign %s: %w", name, err)
	}
	if result.Status != tiers.StatusOK {
		return fmt.Errorf("cannot assign %s: the snippet ended as %s", name, result.Status)
	}

	return nil
}

// Home returns the name of the tier that runs the session's Python, or "" before the first
// snippet.
func (s *Session) Home() string { return s.runner.Home(tiers.Python) }

// Collect copies the files below [tiers.OutFolder] to a folder on the host. The session must
// have been opened with Out.
func (s *Session) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	collector, ok := s.runner.(tiers.Collector)
	if !ok {
		return tiers.Collected{}, errors.New("cannot collect files: the runner of the session keeps none")
	}
	return collector.Collect(ctx, dir)
}

// Close ends the session and its sandbox.
func (s *Session) Close() error { return s.runner.Close() }

// Block is a piece of code in a reply.
type Block struct {
	// Language is the language of the code.
	Language tiers.Language
	// Source is the code as the model wrote it.
	Source string
	// WithoutCalls refuses the code's host calls, so that the code calls no tool and costs nothing.
	WithoutCalls bool
}
