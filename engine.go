// Package rlm runs code that a language model wrote, safely and fast, over inputs far
// larger than a model's window.
//
// An [Engine] owns the tiers: the sandboxes in which code can run. A [Session] is a
// persistent namespace. Its snippets run one after another, read the session's contexts
// as context, context_1 and so on, and call host functions by name.
//
//	engine, err := rlm.New(rlm.Options{})
//	session, err := engine.Open(ctx, rlm.SessionConfig{
//		Contexts: []rlm.Context{rlm.File("big.txt")},
//	})
//	result, err := session.Run(ctx, `print(context.count("error"))`)
//
// A snippet that raises, exceeds a limit or breaks its interpreter yields a result, not an error:
// package tiers describes these three endings.
//
// The engine also runs loops, in which models write the snippets: [Engine.Ask], and the loops of
// packages reflect, reflexion, workflow and distill below repl.
//
// The zero Options provide only tier wasm, which links few modules. Other packages supply
// everything else: the other tiers, a store for named runs, SQL over tables.
//
//	engine, err := rlm.New(rlm.Options{
//		Tiers: standard.Tiers(standard.Options{}), Store: store.Folder("runs"), SQL: tables.SQL,
//	})
package rlm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	"github.com/rlmhq/rlm/internal/data/pyfolder"
	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/plan/analyser/golang"
	"github.com/rlmhq/rlm/internal/plan/analyser/python"
	"github.com/rlmhq/rlm/internal/plan/runner"
	"github.com/rlmhq/rlm/internal/snippet/labels"
	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// The names of the tiers, for a [Policy].
const (
	TierInterp = "interp"
	TierWasm   = wasm.Name
	TierDocker = "docker"
	TierLocal  = "local"
)

// Options configure an Engine. The zero value works.
type Options struct {
	// Tiers returns the tiers of the engine, which closes them. Their names must differ. It
	// receives the wasm tier that the engine always has, because that tier analyses snippets. If
	// Tiers is nil, the engine has only tier wasm; [github.com/rlmhq/rlm/standard.Tiers] adds the
	// other three.
	Tiers func(wasm tiers.Tier) ([]tiers.Tier, error)
	// CacheDir keeps compiled code between processes. Its files are executed, so it must belong to
	// the user alone. Empty means the user's cache directory; "none" keeps nothing, so each
	// process prepares the interpreter again, which takes seconds with the engine wazero.
	CacheDir string
	// WasmEngine runs the WebAssembly of tier wasm: "auto", "wazero" or "aot", as
	// [github.com/rlmhq/rlm/tiers/wasm.Options] explains. Empty is "auto".
	WasmEngine string
	// Packages is a folder of pure-Python packages that snippets can import: os.DirFS of a folder
	// that `pip install --target` created. They take precedence over a tier's packages of the same
	// name. The caller must not change the folder before Close.
	Packages fs.FS
	// Processors is the maximum number of snippets that compute at the same time. Zero means
	// GOMAXPROCS. Waiting snippets take slots in turn, fairly among tenants: see
	// SessionConfig.Labels. A snippet that waits for a host call or sleeps needs no processor.
	Processors int
	// Queue is the maximum number of snippets of one tenant that wait for a slot. Beyond it, a
	// snippet that has not begun gets [ErrBusy]. Zero means 1,000.
	Queue int
	// Memory bounds the sum of the memory limits of all open sessions and loops, in bytes. Opening
	// one that would exceed it returns [ErrBusy]. Zero means no bound.
	Memory int64
	// Store keeps named runs: see Task.Name and [github.com/rlmhq/rlm/store.Folder]. Nil means
	// that no run can have a name.
	Store Store
	// SQL makes the function sql, with which snippets query contexts that are tables; use
	// [github.com/rlmhq/rlm/tables.SQL]. Nil means that snippets have no such function.
	SQL repl.SQL
	// Progress, if set, is called when a slow preparation begins.
	Progress func(what string)
	// Log receives the engine's messages. Nil discards them.
	Log *slog.Logger
}

// defaultQueue is the default of Options.Queue.
const defaultQueue = 1000

// Engine opens sessions and runs loops. It is safe for concurrent use.
type Engine struct {
	wasm      tiers.Tier // runs the analyser, and snippets if it is among tiers
	tiers     []tiers.Tier
	analyser  *python.Analyser
	analysers map[tiers.Language]runner.Analyser
	probes    *runner.Probes
	packages  fs.FS
	log       *slog.Logger

	slots  *slots.Pool
	budget *budget
	store  *runStore
	sql    repl.SQL

	life context.Context //nolint:containedctx // ends with Close, and ends all runs
	end  context.CancelCauseFunc

	mu       sync.Mutex
	closed   bool
	running  sync.WaitGroup // loops
	sessions map[*Session]struct{}
	closing  func() error
}

// New returns an engine. It is cheap: Warm or the first snippet prepares the tiers.
func New(options Options) (*Engine, error) {
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	if options.Processors < 0 || options.Queue < 0 || options.Memory < 0 {
		return nil, errors.New("give positive Processors, Queue and Memory, or 0 for the default")
	}
	dir, err := cacheDir(options)
	if err != nil {
		return nil, err
	}
	runs, err := newRunStore(options.Store)
	if err != nil {
		return nil, err
	}

	e := &Engine{
		probes: &runner.Probes{}, log: options.Log, sessions: map[*Session]struct{}{},
		slots: slots.New(
			cmp.Or(options.Processors, runtime.GOMAXPROCS(0)), cmp.Or(options.Queue, defaultQueue),
		),
		budget: &budget{most: options.Memory},
		store:  runs,
		sql:    options.SQL,
		wasm: wasm.New(wasm.Options{
			CacheDir: dir, Engine: options.WasmEngine, Preload: python.Preload(),
			Progress: options.Progress, Log: options.Log,
		}),
	}
	if options.Packages != nil {
		if e.packages, err = pyfolder.Open(options.Packages); err != nil {
			return nil, err
		}
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	e.closing = sync.OnceValue(e.close)

	e.analyser = python.New(e.wasm)
	e.analysers = map[tiers.Language]runner.Analyser{
		tiers.Python: e.analyser, tiers.Go: golang.Analyser{},
	}

	e.tiers = []tiers.Tier{e.wasm}
	if options.Tiers != nil {
		if e.tiers, err = options.Tiers(e.wasm); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}

	// newRunner also checks the tiers: two tiers with the same name are an error.
	if _, err := e.newRunner(Policy{}, tiers.Config{}); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// cacheDir returns the directory for compiled code, or "none" if code is not cached.
func cacheDir(options Options) (string, error) {
	dir, err := codecache.Choose(options.CacheDir, options.Log)
	return cmp.Or(dir, "none"), err
}

// Tiers returns every tier that the engine may choose, regardless of its isolation. The engine owns
// them; do not close them.
func (e *Engine) Tiers() []tiers.Tier { return slices.Clone(e.tiers) }

// Warm performs the slow preparations of tier wasm and of the named tiers, so that the first
// snippet need not wait for them.
func (e *Engine) Warm(ctx context.Context, names ...string) error {
	if err := e.wasm.Warm(ctx); err != nil {
		return err
	}
	for _, name := range names {
		i := slices.IndexFunc(e.tiers, func(t tiers.Tier) bool { return t.Info().Name == name })
		if i < 0 {
			return fmt.Errorf("cannot warm tier %q: the engine has no such tier", name)
		}
		if err := e.tiers[i].Warm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Opener returns a function that opens runners, which run the snippets of one session. It is
// for loops built on package repl; [Engine.Ask] and the other loops do not need it. The
// caller closes each runner before the engine, and keeps its inputs open until then.
func (e *Engine) Opener(policy Policy) repl.Opener { return e.opener(policy, nil) }

// opener is like Opener, for a task with labels.
func (e *Engine) opener(policy Policy, labels map[string]string) repl.Opener {
	return func(ctx context.Context, cfg tiers.Config) (repl.Runner, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := e.life.Err(); err != nil {
			return nil, errEngineClosed
		}
		if cfg.Labels == nil {
			cfg.Labels = labels
		}

		runner, err := e.newRunner(policy, cfg)
		if err != nil {
			return nil, err
		}
		release, err := e.budget.admit(cfg.Limits)
		if err != nil {
			return nil, err
		}
		return loopRunner{runner, e.slots, release}, nil
	}
}

func (e *Engine) newRunner(policy Policy, cfg tiers.Config) (*runner.Runner, error) {
	cfg.Packages = e.packages
	return runner.New(runner.Config{
		Tiers:     e.tiers,
		Analysers: e.analysers,
		Policy:    policy,
		Probes:    e.probes,
		Log:       e.log,
		Config:    cfg,
	})
}

// enter checks the policy and the labels of a task, and counts its loop as running until leave is
// called. The returned context also ends when the engine closes; after an error, enter returns the
// caller's context.
func (e *Engine) enter(
	ctx context.Context, policy Policy, named map[string]string,
) (_ context.Context, leave func(), err error) {
	if err := policy.Validate(); err != nil {
		return ctx, nil, err
	}
	if err := labels.Check(named); err != nil {
		return ctx, nil, err
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ctx, nil, errEngineClosed
	}

	e.running.Add(1)
	ctx, release := e.endWithEngine(ctx)
	return ctx, func() { release(); e.running.Done() }, nil
}

// endWithEngine returns a context that also ends when the engine closes.
func (e *Engine) endWithEngine(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.life, func() { cancel(errEngineClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// adopt registers an open session, so that Close can close it.
func (e *Engine) adopt(s *Session) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errEngineClosed
	}
	e.sessions[s] = struct{}{}
	return nil
}

// release removes a closed session from the engine.
func (e *Engine) release(s *Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sessions, s)
}

// Close interrupts all snippets and loops, waits until they have ended, closes all sessions and
// frees the tiers. The interrupted calls return [ErrClosed], as does every later use of a session.
// Do not call Close from a host function: it would wait for itself. Close is idempotent.
func (e *Engine) Close() error { return e.closing() }

func (e *Engine) close() error {
	e.mu.Lock()
	e.closed = true
	open := make([]*Session, 0, len(e.sessions))
	for s := range e.sessions {
		open = append(open, s)
	}
	e.mu.Unlock()
	e.end(errEngineClosed)

	var errs []error
	for _, s := range open {
		errs = append(errs, s.closeWithEngine())
	}
	e.running.Wait()

	errs = append(errs, e.store.close(), e.analyser.Close())
	closed := map[tiers.Tier]bool{}
	for _, tier := range append(slices.Clone(e.tiers), e.wasm) {
		if !closed[tier] {
			closed[tier] = true
			errs = append(errs, tier.Close())
		}
	}
	return errors.Join(errs...)
}
