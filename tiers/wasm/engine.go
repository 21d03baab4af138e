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

	"github.com/rlmhq/rlm/internal/cpython"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/internal/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// imageFormat changes with the way in which the image is prepared.
const imageFormat = "2"

// engine is the part that all sandboxes of a tier share: the compiled interpreter, and the
// image of an interpreter with the Python runtime loaded.
type engine struct {
	options Options
	cache   wazero.CompilationCache
	runtime wazero.Runtime
	module  wazero.CompiledModule
	image   *image
	layout  layout
	idle    *idleList
}

// layout holds addresses in the guest's memory.
type layout struct {
	// Input and InputSize locate the static buffer for a snippet's source.
	Input, InputSize uint32
	// EvalBreaker, AsyncBit, AsyncExc and Interrupt let the host raise
	// KeyboardInterrupt: it puts the class's address into AsyncExc and sets the
	// bit in EvalBreaker, as PyThreadState_SetAsyncExc does.
	EvalBreaker, AsyncBit, AsyncExc, Interrupt uint32
	// Hot are the pages that every snippet writes.
	Hot []span
}

func newEngine(ctx context.Context, options Options) (*engine, error) {
	e := &engine{options: options, idle: newIdleList()}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// start compiles the module and loads the image. With a warm cache, it reads both, in
// parallel.
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
		cached = e.lookup(key) // another process may have prepared it
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

// imageKey hashes everything that the prepared image depends on.
func (e *engine) imageKey() string {
	m := cpython.Manifest()
	h := sha256.New()
	_, _ = io.WriteString(h, imageFormat+m.Module.SHA256+m.Image.SHA256+runtime.GOARCH)
	_, _ = io.WriteString(h, pykernel.Boot()+"\x00"+e.options.Preload)
	return hex.EncodeToString(h.Sum(nil))
}

// compile compiles the module or loads it from the cache. It deletes an unreadable cache and
// tries once more.
func (e *engine) compile(ctx context.Context) error {
	err := e.compileOnce(ctx)
	if err == nil || e.options.CacheDir == "" || e.module != nil || e.cache == nil ||
		ctx.Err() != nil {
		return err
	}
	e.options.Log.Warn("cannot use the cached code; compiling again", "error", err)
	errs := []error{
		err, e.runtime.Close(ctx), e.cache.Close(ctx),
		os.RemoveAll(filepath.Join(e.options.CacheDir, codeDir)),
	}

	if errors.Join(errs[1:]...) != nil {
		return errors.Join(errs...)
	}
	return e.compileOnce(ctx)
}

// codeDir is the folder of compiled code in the cache directory.
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

// imports provides the guest's only imports: WASI without files, and the requests of package
// session.
func (e *engine) imports(ctx context.Context) error {
	wasi := e.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	// wazero's proc_exit frees the guest's memory while the guest is still on the stack.
	// hostExit only ends the run; the sandbox is discarded later.
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	wasi.NewFunctionBuilder().WithGoModuleFunction(
		api.GoModuleFunc(hostExit), []api.ValueType{i32}, nil,
	).Export("proc_exit")

	// Instances are reused, so the guest must not change its descriptors, the only state of
	// an instance on the host.
	refuse := api.GoModuleFunc(hostRefuse)
	for name, params := range map[string][]api.ValueType{
		"fd_close": {i32}, "fd_renumber": {i32, i32}, "fd_fdstat_set_flags": {i32, i32},
	} {
		wasi.NewFunctionBuilder().
			WithGoModuleFunction(refuse, params, []api.ValueType{i32}).
			Export(name)
	}

	if _, err := wasi.Instantiate(ctx); err != nil {
		return fmt.Errorf("cannot provide WASI: %w", err)
	}

	type list = []api.ValueType
	rlm := e.runtime.NewHostModuleBuilder("rlm")
	for name, f := range map[string]struct {
		function        api.GoModuleFunc
		params, results list
	}{
		"call":  {hostCall, list{i32, i32}, list{i64}},
		"take":  {hostTake, list{i32, i32}, nil},
		"yield": {hostYield, nil, nil},
	} {
		rlm.NewFunctionBuilder().WithGoModuleFunction(f.function, f.params, f.results).Export(name)
	}

	if _, err := rlm.Instantiate(ctx); err != nil {
		return fmt.Errorf("cannot provide the host's functions: %w", err)
	}
	return nil
}

// derive makes the image from which sandboxes start. It loads the Python runtime into the
// shipped image, in which CPython has just started.
func (e *engine) derive(ctx context.Context, key string) error {
	data, err := cpython.Image()
	if err != nil {
		return err
	}
	if e.image, err = imageOf(data); err != nil {
		return err
	}

	// Loading is deterministic, so the image is the same on all machines.
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

// learnHot finds the pages that a small snippet writes.
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
