// Package rlm runs code that a language model wrote, safely and fast, over
// inputs far larger than a model's window.
//
// An [Engine] holds what is made once: the tiers. A [Session] is a persistent
// namespace in which snippets run one after another, with contexts that they
// find as context, context_1 and so on, and host functions that they call by
// name.
//
//	engine, err := rlm.New(rlm.Options{})
//	session, err := engine.Open(ctx, rlm.SessionConfig{Contexts: []rlm.Context{rlm.File("big.txt")}})
//	result, err := session.Run(ctx, `print(context.count("error"))`)
//
// A snippet that raises, exceeds a limit or breaks its interpreter is a result,
// not an error: see package tiers for the three endings.
package rlm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// Options configure an Engine. The zero value works.
type Options struct {
	// CacheDir keeps compiled code between processes. Code in it is run, so it
	// must belong to the user alone. Empty means the user's cache directory,
	// NoCache none.
	CacheDir string
	// Progress, if set, is told when a slow preparation begins.
	Progress func(what string)
	// Log receives the engine's own messages. The zero value writes nothing.
	Log zerolog.Logger
}

// NoCache as Options.CacheDir keeps nothing between processes: each then takes
// about two seconds to prepare.
const NoCache = "none"

// Engine opens sessions. It is safe for concurrent use.
type Engine struct{ tier *wasm.Tier }

// New returns an engine. It prepares nothing yet, so that it is cheap: the first
// Open does, or Warm.
func New(options Options) (*Engine, error) {
	dir := options.CacheDir
	switch dir {
	case NoCache:
		dir = ""
	case "":
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("cannot find the user's cache directory (set Options.CacheDir, to rlm.NoCache for none): %w", err)
		}
		dir = filepath.Join(user, "rlm")
	}
	return &Engine{wasm.New(wasm.Options{CacheDir: dir, Progress: options.Progress, Log: options.Log})}, nil
}

// Warm does the slow preparations ahead of the first Open.
func (e *Engine) Warm(ctx context.Context) error { return e.tier.Warm(ctx) }

// Close frees the engine. All its sessions must be closed.
func (e *Engine) Close() error { return e.tier.Close() }

// SessionConfig says what a session has. The zero value is a session without
// contexts and host functions, within the default limits.
type SessionConfig struct {
	// Contexts are what snippets work on.
	Contexts []Context
	// Host answers the calls of Functions and of the REPL protocol's names.
	Host      tiers.Host
	Functions []tiers.Function
	// Limits bound each snippet; a zero field means the default.
	Limits tiers.Limits
	// Deterministic makes clocks and randomness the same in every run.
	Deterministic bool
}

// Session is a persistent namespace. It has one owner: its methods must not be
// called concurrently.
type Session struct {
	sandbox tiers.Sandbox
	inputs  *inputs
	closed  bool
}

// Open starts a session.
func (e *Engine) Open(ctx context.Context, cfg SessionConfig) (*Session, error) {
	in, err := openContexts(ctx, cfg.Contexts)
	if err != nil {
		return nil, err
	}
	sandbox, err := e.tier.Open(ctx, tiers.Config{
		Host: cfg.Host, Functions: cfg.Functions, Inputs: in.list,
		Limits: cfg.Limits, Deterministic: cfg.Deterministic,
	})
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return &Session{sandbox: sandbox, inputs: in.share()}, nil
}

// Run runs a Python snippet in the session's namespace.
func (s *Session) Run(ctx context.Context, source string) (tiers.Result, error) {
	return s.RunJob(ctx, tiers.Job{Source: source})
}

// RunJob is Run with all that a job can say.
func (s *Session) RunJob(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	return s.sandbox.Run(ctx, job)
}

// Inputs describes the session's contexts.
func (s *Session) Inputs() []tiers.Input { return s.inputs.list }

// Fork returns an independent session with the same namespace.
func (s *Session) Fork(ctx context.Context) (*Session, error) {
	forker, ok := s.sandbox.(tiers.Forker)
	if !ok {
		return nil, errors.New("cannot fork the session: its tier has no fork")
	}
	sandbox, err := forker.Fork(ctx)
	if err != nil {
		return nil, err
	}
	return &Session{sandbox: sandbox, inputs: s.inputs.share()}, nil
}

// Close ends the session. It is idempotent.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.sandbox.Close(), s.inputs.release())
}
