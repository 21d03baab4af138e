package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/cpu"

	"github.com/rlmhq/rlm/internal/cpython"
)

// codeDir is the folder of compiled code in the cache directory.
const codeDir = "code"

// compile compiles the module or loads its code from the cache. If wazero refuses the cached
// code, compile tries once more without it.
func (e *engine) compile(ctx context.Context) error {
	isCached, err := e.compileOnce(ctx, true)
	if err == nil || !isCached || ctx.Err() != nil {
		return err
	}
	e.options.Log.Warn("cannot use the cached code; compiling again", "error", err)

	if closed := errors.Join(e.runtime.Close(ctx), e.cache.Close(ctx)); closed != nil {
		return errors.Join(err, closed)
	}
	_, err = e.compileOnce(ctx, false)
	return err
}

// compileOnce reports whether it has given wazero code from the cache.
func (e *engine) compileOnce(ctx context.Context, mayLoad bool) (isCached bool, err error) {
	config := wazero.NewRuntimeConfigCompiler().WithDebugInfoEnabled(false)
	desk := e.newDesk()
	if desk != nil {
		defer desk.remove()
		e.cache = desk.cache
		config = config.WithCompilationCache(desk.cache)
	}

	var group sync.WaitGroup
	if desk != nil && mayLoad {
		group.Go(func() { e.load(desk) })
	}
	module, err := cpython.Module()
	group.Wait()
	if err != nil {
		return false, err
	}

	isCached = desk != nil && desk.loaded != ""
	if !isCached {
		e.announce()
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := e.imports(ctx); err != nil {
		return isCached, err
	}
	e.module, err = e.runtime.CompileModule(
		experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), module,
	)
	if err != nil {
		return isCached, fmt.Errorf("cannot compile the interpreter: %w", err)
	}

	e.keep(desk)
	return isCached, nil
}

// desk is a private folder in which wazero reads and writes compiled code. wazero opens its
// files by name and trusts them. So it never sees the cache, only a copy of the code that was
// verified.
type desk struct {
	dir    string
	cache  wazero.CompilationCache
	folder string // wazero's, whose name has wazero's version
	loaded string // the name of the copy, empty if none
	copied *os.File
}

const deskPrefix = "work-"

// newDesk returns nil if there is no cache, or no place for a desk.
func (e *engine) newDesk() *desk {
	if e.seal == nil {
		return nil
	}

	dir, err := os.MkdirTemp(e.options.CacheDir, deskPrefix)
	if err != nil { // the cache may be read-only
		if dir, err = os.MkdirTemp("", "rlm-"+deskPrefix); err == nil {
			err = checkPrivate(dir)
		}
	}
	d := &desk{dir: dir}
	if err == nil {
		d.cache, err = wazero.NewCompilationCacheWithDir(dir)
	}
	if err == nil {
		d.folder, err = onlyEntry(dir)
	}
	if err != nil {
		e.options.Log.Warn("cannot use cached code: there is no folder for a copy", "error", err)
		d.remove()
		return nil
	}

	return d
}

// onlyEntry returns the path of what a folder contains.
func onlyEntry(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		return "", errors.Join(err, fmt.Errorf("%s has %d entries, not one", dir, len(entries)))
	}
	return filepath.Join(dir, entries[0].Name()), nil
}

func (d *desk) remove() {
	if d.copied != nil {
		_ = d.copied.Close() // wazero has read it
	}
	if d.dir != "" {
		_ = os.RemoveAll(d.dir) // sweep tries again
	}
}

// codeKey identifies code for this module, wazero, system and processor.
func (d *desk) codeKey() string {
	h := sha256.New()
	_, _ = io.WriteString(h, "code"+imageFormat+cpython.Manifest().Module.SHA256)
	_, _ = fmt.Fprint(h, filepath.Base(d.folder), cpu.X86, cpu.ARM64)
	return hex.EncodeToString(h.Sum(nil))
}

func (e *engine) codePath(d *desk) string {
	return filepath.Join(e.options.CacheDir, codeDir, d.codeKey()[:32])
}

// load copies the cached code to the desk, if there is some and it is unchanged.
func (e *engine) load(d *desk) {
	isLoaded := e.fetch(e.codePath(d), d.codeKey(), func(c *cachedFile) (err error) {
		d.loaded = c.head.Name
		if d.copied, err = createCopy(filepath.Join(d.folder, d.loaded)); err == nil {
			_, err = c.WriteTo(d.copied)
		}
		return err
	})

	if !isLoaded && d.loaded != "" {
		_ = os.Remove(filepath.Join(d.folder, d.loaded)) // wazero refuses half of a file
		d.loaded = ""
	}
}

// keep caches the code that wazero has written to the desk, if it is not from the cache.
func (e *engine) keep(d *desk) {
	if d == nil {
		return
	}
	files, err := os.ReadDir(d.folder)
	for _, file := range files {
		if file.Name() == d.loaded {
			continue
		}
		var code []byte
		if code, err = os.ReadFile(filepath.Join(d.folder, file.Name())); err == nil {
			e.store(e.codePath(d), cachedHead{Key: d.codeKey(), Name: file.Name()}, code)
		}
	}

	if err != nil {
		e.options.Log.Warn("cannot cache the compiled code", "error", err)
	}
}

// deskAge is the age from which a desk belongs to a process that was killed.
const deskAge = time.Hour

// sweep removes the desks of processes that were killed.
func (e *engine) sweep() {
	desks, _ := filepath.Glob(filepath.Join(e.options.CacheDir, deskPrefix+"*"))
	for _, dir := range desks {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > deskAge {
			_ = os.RemoveAll(dir) // the next process tries again
		}
	}
}
