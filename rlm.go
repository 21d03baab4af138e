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
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/router/golang"
	"github.com/rlmhq/rlm/router/python"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
	"github.com/rlmhq/rlm/tiers/interp"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// Options configure an Engine. The zero value works.
type Options struct {
	// CacheDir keeps compiled code between processes. Code in it is run, so it
	// must belong to the user alone. Empty means the user's cache directory,
	// NoCache none.
	CacheDir string
	// Python is the host's interpreter for tier local, a path or a name; empty
	// means python3.
	Python string
	// DockerHost is the address of the Docker daemon for tier docker, as in the
	// variable DOCKER_HOST; empty means the system's own socket.
	DockerHost string
	// DockerImage pins the image of tier docker by its ID, "sha256:…"; empty means
	// the one that this version of the program builds. DockerGoImage is the same for
	// the image go.
	DockerImage, DockerGoImage string
	// Containers is how many containers of tier docker are kept started for sessions
	// to come. Zero means none: each then starts when it is needed.
	Containers int
	// Progress, if set, is told when a slow preparation begins.
	Progress func(what string)
	// Log receives the engine's own messages. Nil writes nothing.
	Log *slog.Logger
}

// NoCache as Options.CacheDir keeps nothing between processes: each then takes
// about two seconds to prepare.
const NoCache = "none"

// Engine opens sessions. It is safe for concurrent use.
type Engine struct {
	wasm      *wasm.Tier
	tiers     []tiers.Tier
	analyser  *python.Analyser
	analysers map[tiers.Language]router.Analyser
	probes    *router.Probes
	log       *slog.Logger
	closed    atomic.Bool
}

// New returns an engine. It prepares nothing yet, so that it is cheap: the first
// snippet does, or Warm.
func New(options Options) (*Engine, error) {
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	dir, err := cacheDir(options)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		wasm:   wasm.New(wasm.Options{CacheDir: dir, Preload: python.Preload(), Progress: options.Progress, Log: options.Log}),
		probes: &router.Probes{}, log: options.Log,
	}
	warm := -1
	if options.Containers > 0 {
		warm = options.Containers
	}
	e.tiers = []tiers.Tier{
		interp.New(interp.Options{}), e.wasm,
		docker.New(docker.Options{Host: options.DockerHost, Image: options.DockerImage, GoImage: options.DockerGoImage, Warm: warm, Log: options.Log}),
		local.New(local.Options{Python: options.Python, Warm: -1, Log: options.Log}),
	}
	e.analyser = python.New(e.wasm)
	e.analysers = map[tiers.Language]router.Analyser{tiers.Python: e.analyser, tiers.Go: golang.Analyser{}}
	return e, nil
}

// cacheDir returns where compiled code is kept, "" for nowhere. A directory that
// the caller named must do; without the usual one there is only a slower start.
func cacheDir(options Options) (string, error) {
	switch options.CacheDir {
	case NoCache:
		return "", nil
	case "":
		dir, err := os.UserCacheDir()
		if err == nil {
			dir = filepath.Join(dir, "rlm")
			err = wasm.CheckCacheDir(dir)
		}
		if err != nil {
			options.Log.Warn("nothing is kept between processes, so that each takes seconds to start; name another cache directory", "error", err)
			return "", nil
		}
		return dir, nil
	}
	return options.CacheDir, wasm.CheckCacheDir(options.CacheDir)
}

// Tiers are the tiers that the engine chooses from, the strongest walls and all
// others alike. They must not be closed.
func (e *Engine) Tiers() []tiers.Tier { return slices.Clone(e.tiers) }

// Warm does the slow preparations ahead of the first snippet.
func (e *Engine) Warm(ctx context.Context) error { return e.wasm.Warm(ctx) }

// Close frees the engine. All its sessions must be closed.
func (e *Engine) Close() error {
	e.closed.Store(true)
	errs := []error{e.analyser.Close()}
	for _, tier := range e.tiers {
		if closer, ok := tier.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
	}
	return errors.Join(errs...)
}

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
	// Mounts are files and folders of the host that snippets find, read-only; Out
	// gives them the folder /out, whose files Collect brings back. Only tier docker
	// has these.
	Mounts []tiers.Mount
	Out    bool
	// Policy says which tiers may run the snippets. The zero value allows all
	// but local.
	Policy router.Policy
}

// Result is what became of a snippet, and where it ran.
type Result = router.Result

// Session is a persistent namespace over snippets, each of which runs in the
// cheapest tier that can run it. It has one owner: its methods must not be
// called concurrently.
type Session struct {
	runner *router.Runner
	inputs *inputs
	closed bool
}

// Open starts a session.
func (e *Engine) Open(ctx context.Context, cfg SessionConfig) (*Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.closed.Load() {
		return nil, errors.New("the engine is closed")
	}
	if err := session.CheckFunctions(cfg.Functions); err != nil {
		return nil, err
	}
	in, err := openContexts(ctx, cfg.Contexts)
	if err != nil {
		return nil, err
	}
	runner, err := e.Opener(cfg.Policy)(ctx, tiers.Config{
		Host: cfg.Host, Functions: cfg.Functions, Inputs: in.list,
		Limits: cfg.Limits, Deterministic: cfg.Deterministic, Mounts: cfg.Mounts, Out: cfg.Out,
	})
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return &Session{runner: runner, inputs: in.share()}, nil
}

// Opener returns what makes the runner of a session under a policy: the loops of
// package repl open theirs by it. What the runner is given stays the caller's.
func (e *Engine) Opener(policy router.Policy) func(ctx context.Context, cfg tiers.Config) (*router.Runner, error) {
	return func(ctx context.Context, cfg tiers.Config) (*router.Runner, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if e.closed.Load() {
			return nil, errors.New("the engine is closed")
		}
		return router.NewRunner(router.RunnerConfig{
			Tiers: e.tiers, Analysers: e.analysers, Policy: policy, Probes: e.probes, Log: e.log, Config: cfg,
		})
	}
}

// Run runs a Python snippet in the session's namespace.
func (s *Session) Run(ctx context.Context, source string) (Result, error) {
	return s.RunJob(ctx, tiers.Job{Source: source})
}

// RunJob is Run with all that a job can say.
func (s *Session) RunJob(ctx context.Context, job tiers.Job) (Result, error) {
	return s.runner.Run(ctx, job)
}

// Explain returns where a snippet would run and why, and runs nothing.
func (s *Session) Explain(ctx context.Context, job tiers.Job) (router.Plan, error) {
	return s.runner.Explain(ctx, job)
}

// Collect writes the files that snippets have written below /out into a folder of
// the host, which must be empty. It takes regular files only, and says what else
// was there. The session must have been opened with Out.
func (s *Session) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	return s.runner.Collect(ctx, dir)
}

// Inputs describes the session's contexts.
func (s *Session) Inputs() []tiers.Input { return s.inputs.list }

// Fork returns an independent session with the same namespace.
func (s *Session) Fork(ctx context.Context) (*Session, error) {
	runner, err := s.runner.Fork(ctx)
	if err != nil {
		return nil, err
	}
	return &Session{runner: runner, inputs: s.inputs.share()}, nil
}

// Close ends the session. It is idempotent.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.runner.Close(), s.inputs.release())
}
