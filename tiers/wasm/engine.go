package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/internal/session/wire"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm/cpython"
)

// imageFormat changes when the way of preparing the image does.
const imageFormat = "2"

// engine is what all sandboxes of a tier share: the compiled interpreter and the
// image of one that has our kernel loaded.
type engine struct {
	options Options
	cache   wazero.CompilationCache
	runtime wazero.Runtime
	module  wazero.CompiledModule
	image   *image
	layout  layout
	idle    *idleList
}

// layout is where things lie in the guest's memory.
type layout struct {
	// Input and InputSize are the static buffer for a snippet's source.
	Input, InputSize uint32
	// EvalBreaker, AsyncBit, AsyncExc and Interrupt let the host raise
	// KeyboardInterrupt: it puts the class's address into AsyncExc and sets the
	// bit in EvalBreaker, as PyThreadState_SetAsyncExc does.
	EvalBreaker, AsyncBit, AsyncExc, Interrupt uint32
	// Hot are the runs of pages that every snippet writes to.
	Hot []span
}

func newEngine(ctx context.Context, options Options) (*engine, error) {
	e := &engine{options: options, idle: newIdleList()}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// start compiles and loads the image; with a warm cache both are reads, done
// side by side.
func (e *engine) start(ctx context.Context) error {
	begun := time.Now()
	if e.options.CacheDir != "" {
		if err := checkPrivate(e.options.CacheDir); err != nil {
			return err
		}
	}

	key := e.imageKey()
	cached := e.lookup(key)
	if cached == nil {
		release, err := e.lock(ctx)
		if err != nil {
			return err
		}
		defer release()
		cached = e.lookup(key) // another process may have been at it
	}

	if cached == nil && e.options.Progress != nil {
		e.options.Progress("preparing Python for this machine, once: about two seconds")
	}
	group, compileCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.compile(compileCtx) })
	if cached != nil {
		group.Go(func() error { return e.adopt(cached) })
	}
	if err := group.Wait(); err != nil {
		return err
	}

	if e.image == nil {
		if err := e.derive(ctx, key); err != nil {
			return err
		}
	}
	e.options.Log.Debug("wasm tier prepared", "took", time.Since(begun), "cached", cached != nil)

	return nil
}

// imageKey names everything that the prepared image depends on.
func (e *engine) imageKey() string {
	m := cpython.Manifest()
	h := sha256.New()
	_, _ = io.WriteString(h, imageFormat+m.Module.SHA256+m.Image.SHA256+runtime.GOARCH)
	_, _ = io.WriteString(h, pykernel.Boot()+"\x00"+e.options.Preload)
	return hex.EncodeToString(h.Sum(nil))
}

// compile compiles the module or loads it from the cache. A cache that cannot be
// read is thrown away, once: it is only a cache.
func (e *engine) compile(ctx context.Context) error {
	err := e.compileOnce(ctx)
	if err == nil || e.options.CacheDir == "" || e.module != nil || e.cache == nil ||
		ctx.Err() != nil {
		return err
	}
	e.options.Log.Warn("the cached code cannot be used; it is made anew", "error", err)
	errs := []error{
		err, e.runtime.Close(ctx), e.cache.Close(ctx),
		os.RemoveAll(filepath.Join(e.options.CacheDir, codeDir)),
	}

	if errors.Join(errs[1:]...) != nil {
		return errors.Join(errs...)
	}
	return e.compileOnce(ctx)
}

// codeDir is where compiled code lies in the cache directory.
const codeDir = "code"

func (e *engine) compileOnce(ctx context.Context) error {
	config := wazero.NewRuntimeConfigCompiler().WithDebugInfoEnabled(false)
	if e.options.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(e.options.CacheDir, codeDir))
		if err != nil {
			return fmt.Errorf("cannot use the cache directory %s: %w", e.options.CacheDir, err)
		}
		e.cache = cache
		config = config.WithCompilationCache(cache)
	}

	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := e.imports(ctx); err != nil {
		return err
	}
	module, err := cpython.Module()
	if err != nil {
		return err
	}

	e.module, err = e.runtime.CompileModule(
		experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), module,
	)
	if err != nil {
		return fmt.Errorf("cannot compile the interpreter: %w", err)
	}

	return nil
}

// imports offers the guest its only ways out: WASI without files, and package
// pykernel's requests.
func (e *engine) imports(ctx context.Context) error {
	wasi := e.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	// wazero's own proc_exit frees the guest's memory while the guest is still
	// on the stack. Ours only ends the run; the sandbox is discarded after it.
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	wasi.NewFunctionBuilder().WithGoModuleFunction(
		api.GoModuleFunc(hostExit), []api.ValueType{i32}, nil,
	).Export("proc_exit")

	// What would change the descriptors, the only state of an instance on the
	// host's side, does not exist: instances are used again.
	refuse := api.GoModuleFunc(hostRefuse)
	for name, params := range map[string][]api.ValueType{
		"fd_close": {i32}, "fd_renumber": {i32, i32}, "fd_fdstat_set_flags": {i32, i32},
	} {
		wasi.NewFunctionBuilder().
			WithGoModuleFunction(refuse, params, []api.ValueType{i32}).
			Export(name)
	}

	if _, err := wasi.Instantiate(ctx); err != nil {
		return fmt.Errorf("cannot offer WASI: %w", err)
	}
	_, err := e.runtime.NewHostModuleBuilder("rlm").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostCall), []api.ValueType{
		i32,
		i32,
	}, []api.ValueType{i64}).Export("call").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostTake), []api.ValueType{
		i32,
		i32,
	}, nil).Export("take").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostYield), nil,
		nil).Export("yield").
		Instantiate(ctx)
	if err != nil {
		return fmt.Errorf("cannot offer the host's functions: %w", err)
	}
	return nil
}

// derive makes the image that sandboxes start from: the shipped one, in which
// Python has just started, with our kernel loaded on top.
func (e *engine) derive(ctx context.Context, key string) error {
	data, err := cpython.Image()
	if err != nil {
		return err
	}
	if e.image, err = imageOf(data); err != nil {
		return err
	}

	// The loading is deterministic, so that the image is the same everywhere.
	accounts, err := session.NewAccounts(ctx, tiers.Config{Deterministic: true})
	if err != nil {
		return err
	}
	in, err := e.create(ctx, accounts, e.image.size, 1<<30)
	if err != nil {
		return err
	}
	defer in.close()

	for _, source := range []string{pykernel.Boot(), e.options.Preload} {
		if err := in.boot(ctx, source); err != nil {
			return err
		}
	}
	prepared := append([]byte(nil), in.memory()...)
	if e.layout, err = in.readLayout(ctx); err != nil {
		return err
	}

	in.close()
	if err := e.replaceImage(prepared); err != nil {
		return err
	}
	if err := e.learnHot(ctx); err != nil {
		return err
	}

	e.store(key, prepared)
	return nil
}

func imageOf(data []byte) (*image, error) {
	return newImage(bytes.NewReader(data), uint64(len(data)), dirtyRuns(data))
}

func (e *engine) replaceImage(data []byte) error {
	old := e.image
	img, err := imageOf(data)
	if err != nil {
		return err
	}
	e.image = img
	return old.close()
}

// learnHot finds the pages that a small snippet writes to.
func (e *engine) learnHot(ctx context.Context) error {
	accounts, err := session.NewAccounts(ctx, tiers.Config{})
	if err != nil {
		return err
	}
	in, err := e.create(ctx, accounts, e.image.size, 1<<30)
	if err != nil {
		return err
	}
	defer in.close()
	if err := accounts.Begin(ctx, tiers.Job{}); err != nil {
		return err
	}

	code, err := in.run(ctx, "print(sum(range(100)))", wire.FlagReseed|1<<wire.OrdinalShift)
	accounts.End(code)
	if err != nil {
		return fmt.Errorf("cannot rehearse a snippet: %w", err)
	}
	e.layout.Hot = nil

	for _, run := range changedRuns(in.mem, e.image) {
		if run.End <= e.image.size {
			e.layout.Hot = append(e.layout.Hot, run)
		}
	}
	e.image.hot = e.layout.Hot

	return nil
}

func (e *engine) close() error {
	ctx := context.Background()
	var errs []error
	e.idle.close()
	if e.runtime != nil {
		errs = append(errs, e.runtime.Close(ctx))
	}
	if e.cache != nil {
		errs = append(errs, e.cache.Close(ctx))
	}
	if e.image != nil {
		errs = append(errs, e.image.close())
	}

	return errors.Join(errs...)
}
