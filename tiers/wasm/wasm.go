// Package wasm is the tier that runs CPython as WebAssembly: either as machine code that is part of
// the program, or under wazero.
//
// The program contains the interpreter, so nothing needs to be installed. A sandbox is a
// copy-on-write view of the memory of an interpreter that has already started, which makes a new
// one cheap: docs/reference/performance.md has the figures. The guest reaches the host only through
// its imports: WASI without files, and the functions of the module rlm. Of these, call accepts the
// requests of package session.
//
// Each loop and each tree of calls of the guest's machine code counts fuel. After a slice of
// fuel, a fraction of a millisecond's work, the guest calls the host, which checks the limits.
// No timer, signal or other goroutine touches a running guest. If a guest does not call, the
// watchdog makes it call.
package wasm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// Name is the tier's name.
const Name = "wasm"

// Options configure the tier. The zero value works.
type Options struct {
	// CacheDir stores machine code and the prepared image between processes. Its code is executed,
	// so only the user may have access to it. Empty means the user's cache directory, if it is
	// usable; "none" stores nothing, so each process prepares the tier again.
	CacheDir string
	// Engine runs the interpreter's WebAssembly. "aot" runs machine code that is part of the
	// program; it exists for Linux on amd64 and arm64. "wazero" compiles the WebAssembly on this
	// machine and caches the code, which takes about twice as long to run. "auto", like "", means
	// aot if its code works here, otherwise wazero.
	Engine string
	// Preload is trusted Python source that runs once, when the image is prepared. Sandboxes
	// start with the modules that it leaves in sys.modules.
	Preload string
	// Progress, if set, is called when a slow step begins.
	Progress func(what string)
	// Log receives diagnostics for developers of the tier.
	Log *slog.Logger

	// isCounted leaves the objects of the image reference-counted, for tests that compare the two
	// kinds of image.
	isCounted bool
}

// tier runs CPython in WebAssembly.
type tier struct {
	options Options

	mu     sync.Mutex // guards engine and closed
	engine *engine
	closed bool
}

// New returns the tier. It prepares nothing: see Warm.
func New(options Options) tiers.Tier {
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	switch options.CacheDir {
	case "none":
		options.CacheDir = ""
	case "":
		options.CacheDir, _ = codecache.Choose("", options.Log) // Choose logged the error
	}
	return &tier{options: options}
}

// Info describes the tier. `make bench` measures Cost: see docs/reference/performance.md.
func (t *tier) Info() tiers.Info {
	engine, why := t.options.engine()
	version := "CPython " + cpython.Manifest().Python + ", built in, engine " + engine
	if why != nil {
		version += " (" + why.Error() + ")"
	}

	return tiers.Info{
		Name:      Name,
		Version:   version,
		Languages: []tiers.Language{tiers.Python},
		Features: []tiers.Feature{
			tiers.FeatureAsync, tiers.FeatureClasses, tiers.FeatureGenerators, tiers.FeatureDynamic,
			tiers.FeatureThreads, tiers.FeatureFork, tiers.FeatureMove, tiers.FeatureHugeContext, tiers.FeatureFuel,
			tiers.FeatureDeterminism, tiers.FeatureOut, tiers.FeaturePackages,
		},
		Modules:   modules(),
		Isolation: tiers.IsolationWasm,
		Cost: tiers.Cost{
			Start: 500 * time.Microsecond, Snippet: 90 * time.Microsecond,
			Slowdown: map[tiers.Language]float64{tiers.Python: slowdowns[engine]},
		},
	}
}

var modules = sync.OnceValue(func() map[string]bool {
	return tiers.ModuleSet(append(cpython.Modules(), pykernel.Modules()...)...)
})

// Probe reports whether the machine can run the tier, and the engine if the options name one.
// wazero compiles for amd64 and arm64.
func (t *tier) Probe(context.Context) error {
	if err := t.options.checkEngine(); err != nil {
		return err
	}
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return fmt.Errorf("tier wasm needs an amd64 or arm64 processor, but this one is %s",
			runtime.GOARCH)
	}
	return nil
}

// Warm compiles the interpreter and prepares its image, or loads both from the cache. Without it,
// the first Open does so.
func (t *tier) Warm(ctx context.Context) error {
	_, err := t.prepare(ctx)
	return err
}

// prepare returns the engine, which the first call creates.
func (t *tier) prepare(ctx context.Context) (*engine, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errors.New("the wasm tier is closed")
	}
	if t.engine == nil {
		if err := t.Probe(ctx); err != nil {
			return nil, err
		}
		e, err := newEngine(ctx, t.options)
		if err != nil {
			return nil, fmt.Errorf("cannot prepare the wasm tier: %w", err)
		}
		t.engine = e
	}

	return t.engine, nil
}

// Open starts a sandbox.
func (t *tier) Open(ctx context.Context, cfg tiers.Config) (tiers.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := session.RejectMounts(Name, cfg); err != nil {
		return nil, err
	}

	e, err := t.prepare(ctx)
	if err != nil {
		return nil, err
	}
	return open(ctx, e, cfg)
}

// Close frees the compiled code and the image. Close all sandboxes first.
func (t *tier) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.engine == nil {
		return nil
	}

	e := t.engine
	t.engine = nil
	return e.close()
}
