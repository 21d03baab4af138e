package codecache

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
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/rlmhq/rlm/internal/machine/attached"
)

// Module is a module to compile.
type Module struct {
	// ID identifies the module's bytes and whatever else its code depends on.
	ID string
	// Read returns the bytes of the module.
	Read func() ([]byte, error)
	// Import provides the module's imports.
	Import func(context.Context, wazero.Runtime) error
	// Announce, if set, is called before a compilation, but not before cached code is loaded.
	Announce func()
}

// Code is a compiled module in its runtime.
type Code struct {
	Runtime wazero.Runtime
	Module  wazero.CompiledModule
	cache   wazero.CompilationCache
}

// Close frees the code. Close its instances first.
func (c *Code) Close() error {
	ctx := context.Background()
	var errs []error
	if c.Runtime != nil {
		errs = append(errs, c.Runtime.Close(ctx))
	}
	if c.cache != nil {
		errs = append(errs, c.cache.Close(ctx))
	}
	return errors.Join(errs...)
}

// Compile compiles a module or loads its code from the cache. If wazero refuses the cached
// code, Compile tries once more without it.
func (c *Cache) Compile(ctx context.Context, m Module) (*Code, error) {
	code, isCached, err := c.compileOnce(ctx, m, true)
	if err != nil && isCached && ctx.Err() == nil {
		c.Log.Warn("cannot use the cached code; compiling again", "error", err)
		code, _, err = c.compileOnce(ctx, m, false)
	}
	return code, err
}

// compileOnce reports whether it passed code from the cache to wazero.
func (c *Cache) compileOnce(
	ctx context.Context, m Module, mayLoad bool,
) (code *Code, isCached bool, err error) {
	code = &Code{}
	defer func() {
		if err != nil {
			code, err = nil, errors.Join(err, code.Close())
		}
	}()

	config := wazero.NewRuntimeConfigCompiler().WithDebugInfoEnabled(false)
	var desk *desk
	key := ""
	if c.seal != nil || attached.Has(partName(m.ID)) {
		desk = c.newDesk()
	}
	if desk != nil {
		defer desk.remove()
		key, code.cache = desk.codeKey(m.ID), desk.cache
		config = config.WithCompilationCache(desk.cache)
	}
	code.Runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := m.Import(ctx, code.Runtime); err != nil {
		return code, false, err
	}

	var module, hollow []byte
	if desk != nil && mayLoad {
		isCached = c.load(desk, key) || c.unpack(desk, m.ID, key)
	}
	if isCached {
		module = desk.hollow
	} else {
		if module, hollow, err = m.read(); err != nil {
			return code, false, err
		}
		if m.Announce != nil {
			m.Announce()
		}
	}
	code.Module, err = code.Runtime.CompileModule(
		experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), module,
	)
	if err != nil {
		return code, isCached, fmt.Errorf("cannot compile it: %w", err)
	}

	switch {
	case isCached:
		err = desk.checkUse()
	case desk != nil && c.seal != nil:
		c.keep(ctx, desk, key, hollow, code.Runtime)
	}
	return code, isCached, err
}

// read returns the module, and the module to which its code is bound in the cache.
func (m Module) read() (module, hollow []byte, err error) {
	if module, err = m.Read(); err == nil {
		hollow, err = hollowOut(module)
	}
	return module, hollow, err
}

// compileAside compiles a module only to make wazero write its file.
func compileAside(ctx context.Context, r wazero.Runtime, module []byte) error {
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		return fmt.Errorf("cannot compile it without bodies: %w", err)
	}
	return compiled.Close(ctx)
}

// desk is a private folder in which wazero reads and writes compiled code. wazero opens its files
// by name and trusts them. So it never accesses the cache, only a verified copy of the code.
type desk struct {
	dir      string
	cache    wazero.CompilationCache
	folder   string // wazero's own, with its version in the name
	features string // identifies what wazero's code may use of this processor
	hollow   []byte // module of the loaded code
	loaded   string // name of the copy of the code
	copied   *os.File
	entry    os.FileInfo // of the copy in the folder
}

const deskPrefix = "rlm-work-"

// newDesk returns a new desk, or nil if it cannot make a private folder.
func (c *Cache) newDesk() *desk {
	dir, err := "", errNoCache
	if c.seal != nil {
		dir, err = os.MkdirTemp(c.Dir, deskPrefix)
	}
	if err != nil { // the cache may be missing or read-only
		if dir, err = os.MkdirTemp("", deskPrefix); err == nil {
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
	if err == nil {
		d.features, err = d.nameEmpty()
	}
	if err != nil {
		c.Log.Warn("cannot use cached code: there is no folder for a copy", "error", err)
		d.remove()
		return nil
	}

	return d
}

// onlyEntry returns the path of the only entry in a folder.
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

// codeKey identifies the code for a module, wazero version, system and processor.
func (d *desk) codeKey(module string) string {
	h := sha256.New()
	_, _ = io.WriteString(h, "hollow module and code, on a page"+module)
	_, _ = io.WriteString(h, filepath.Base(d.folder)+d.features)
	return hex.EncodeToString(h.Sum(nil))
}

// nameEmpty returns the name that wazero gives to the code of an empty module, which depends on the
// processor's features, but on nothing else that differs between machines.
func (d *desk) nameEmpty() (string, error) {
	ctx := context.Background()
	config := wazero.NewRuntimeConfigCompiler().WithDebugInfoEnabled(false).WithCompilationCache(d.cache)
	r := wazero.NewRuntimeWithConfig(ctx, config)
	if err := errors.Join(compileAside(ctx, r, emptyModule), r.Close(ctx)); err != nil {
		return "", err
	}

	path, err := onlyEntry(d.folder)
	if err != nil {
		return "", err
	}
	return filepath.Base(path), os.Remove(path)
}

// HasCode reports whether the cache contains code for a module. Only Compile verifies it.
func (c *Cache) HasCode(id string) bool {
	if c.seal == nil {
		return false
	}
	desk := c.newDesk() // its folder name contains wazero's version
	if desk == nil {
		return false
	}
	defer desk.remove()
	return c.Has(c.codePath(desk.codeKey(id)))
}

func (c *Cache) codePath(key string) string { return filepath.Join(c.Dir, CodeDir, key[:32]) }

// load copies the cached code to the desk, and reports whether there was an intact copy.
func (c *Cache) load(d *desk, key string) bool {
	isLoaded := c.Fetch(c.codePath(key), key, func(f *File) (err error) {
		if f.Head.Hollow < 0 || f.Head.Hollow > f.Head.Length {
			return errChanged
		}

		if err := d.create(f.Head.Name); err != nil {
			return err
		}
		parts := divider{first: make([]byte, 0, f.Head.Hollow), rest: d.copied}
		_, err = f.WriteTo(&parts)
		d.hollow = parts.first
		return err
	})

	if !isLoaded && d.loaded != "" {
		_ = os.Remove(d.path(d.loaded)) // wazero would refuse half a file
	}
	return isLoaded
}

// create creates the file for a copy of the code.
func (d *desk) create(name string) (err error) {
	if d.copied != nil {
		_ = d.copied.Close() // of an earlier copy, which was refused
	}
	d.loaded = name
	if d.copied, err = createCopy(d.path(name)); err != nil {
		return err
	}
	d.entry, err = os.Lstat(d.path(name))
	return err
}

// divider fills first, and writes the rest to rest.
type divider struct {
	first []byte
	rest  io.Writer
}

func (d *divider) Write(p []byte) (int, error) {
	n := min(len(p), cap(d.first)-len(d.first))
	d.first = append(d.first, p[:n]...)
	if n == len(p) {
		return n, nil
	}

	m, err := d.rest.Write(p[n:])
	return n + m, err
}

func (d *desk) path(name string) string { return filepath.Join(d.folder, name) }

var errNoCache = errors.New("there is no cache directory")

// emptyModule is a WebAssembly module without sections.
var emptyModule = []byte("\x00asm\x01\x00\x00\x00")

var errUnused = errors.New("wazero has not used it")

// checkUse returns an error if wazero compiled the hollow module instead of using the copy. In that
// case it has written a file.
func (d *desk) checkUse() error {
	entry, err := os.Lstat(d.path(d.loaded))
	if err != nil || !os.SameFile(entry, d.entry) {
		return errUnused
	}
	if _, err := onlyEntry(d.folder); err != nil {
		return errUnused
	}
	return nil
}

// keep caches a hollow module followed by the code that wazero wrote to the desk. The code has the
// name that wazero looks for when it compiles the hollow module.
func (c *Cache) keep(ctx context.Context, d *desk, key string, hollow []byte, r wazero.Runtime) {
	path, err := onlyEntry(d.folder)
	var code []byte
	if err == nil {
		code, err = os.ReadFile(path)
	}
	if err == nil {
		err = compileAside(ctx, r, hollow)
	}
	var files []os.DirEntry
	if err == nil {
		files, err = os.ReadDir(d.folder)
	}
	if err != nil {
		c.Log.WarnContext(ctx, "cannot cache the compiled code", "error", err)
		return
	}

	name := filepath.Base(path) // used for a module without functions
	for _, file := range files {
		if file.Name() != name {
			name = file.Name()
			break
		}
	}
	head := Head{Key: key, Name: name, Hollow: int64(len(hollow))}
	c.Store(c.codePath(key), head, append(hollow, code...))
}

// newPrefix is the prefix of the names of unfinished files.
const newPrefix = "new-"

// deskAge is the age from which a desk is considered left behind by a killed process.
const deskAge = time.Hour

// sweep removes the desks and the unfinished files of killed processes.
func (c *Cache) sweep() {
	desks, _ := filepath.Glob(filepath.Join(c.Dir, deskPrefix+"*"))
	for _, dir := range desks {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > deskAge {
			_ = os.RemoveAll(dir) // the next process tries again
		}
	}

	// The user may also use the folder for other purposes.
	for _, dir := range []string{CodeDir, ImageDir} {
		files, _ := filepath.Glob(filepath.Join(c.Dir, dir, newPrefix+"*"))
		for _, file := range files {
			info, err := os.Lstat(file)
			if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > deskAge {
				_ = os.Remove(file)
			}
		}
	}
}
