package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// python is an interpreter on the host.
type python struct {
	path    string
	version [3]int
	shown   *shown
	modules map[string]bool

	mu       sync.Mutex // guards the fields below
	started  bool       // a process was started
	tried    bool       // compiling the runtime was attempted
	compiled []byte     // the runtime; empty if compiling it failed
}

// runtime returns the runtime compiled for the interpreter, or nil for its first process, because a
// command that starts only one process would compile the runtime twice. The result is also nil if
// the compilation failed; each process then compiles the runtime itself, or reports why it cannot.
func (p *python) runtime(ctx context.Context) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.started && !p.tried {
		p.compiled, _ = pykernel.Compile(exec.CommandContext(ctx, p.path))
		p.tried = ctx.Err() == nil
	}
	p.started = true

	return p.compiled
}

// selfReport makes an interpreter describe itself. It runs outside the jail, because no
// snippet is involved.
const selfReport = `
import importlib.util, json, os, pkgutil, sys, sysconfig
def found(name):
    try:
        return importlib.util.find_spec(name)
    except Exception:
        return None
paths = [p for p in sys.path if p and os.path.isdir(p)]
modules = {"": []}
for path in paths:
    modules.setdefault(path, []).extend(m.name for m in pkgutil.iter_modules([path]))
for name in set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names):
    spec = found(name)
    if spec is not None and not spec.has_location:
        modules[""].append(name)
print(json.dumps({
    "implementation": sys.implementation.name, "version": sys.version_info[:3],
    "executable": sys.executable, "library": os.path.dirname(os.path.abspath(os.__file__)),
    "prefix": sys.prefix, "base_prefix": sys.base_prefix, "exec_prefix": sys.exec_prefix,
    "paths": paths, "modules": modules,
    "halves": [m for m in ("_tkinter", "_curses", "_sqlite3", "_ssl", "_ctypes", "_lzma", "_bz2") if not found(m)],
}))
`

// wholes maps modules of the standard library to the C halves that they depend on, which a system
// may lack.
var wholes = map[string][]string{
	"_tkinter": {"tkinter", "turtle", "turtledemo", "idlelib"},
	"_curses":  {"curses"},
	"_sqlite3": {"sqlite3"},
	"_ssl":     {"ssl"},
	"_ctypes":  {"ctypes"},
	"_lzma":    {"lzma"},
	"_bz2":     {"bz2"},
}

// answer is an interpreter's description of itself.
type answer struct {
	Implementation string
	Version        [3]int
	Executable     string
	Prefix         string
	BasePrefix     string              `json:"base_prefix"` // not Prefix in a virtual environment
	ExecPrefix     string              `json:"exec_prefix"`
	Library        string              // the folder of the standard library
	Paths          []string            // sys.path
	Modules        map[string][]string // by folder, without one if they are built in
	Halves         []string            // the missing C halves of modules
}

const (
	probeTimeout = time.Minute // a busy machine is slow
	maxAnswer    = 4 << 20
)

// findPython finds the interpreter with the given name and queries its modules. Its jail also shows
// the given folders.
func findPython(ctx context.Context, name string, folders []string) (*python, error) {
	if name == "" {
		name = "python3"
	}
	path, err := exec.LookPath(name)
	switch {
	case err != nil && strings.Contains(name, "/"):
		return nil, fmt.Errorf("tier local cannot use --python %s: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf(
			"tier local needs CPython 3.9 or newer, but this host has no %s: install CPython, "+
				"or name an interpreter with --python",
			name,
		)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, probeTimeout, slowError(probeTimeout))
	defer cancel()
	a, err := askPython(ctx, path)
	if err != nil {
		return nil, err
	}

	// The jail starts the target of links. If it was started through a link to a folder, the
	// interpreter finds different prefixes.
	if target := a.program(); target != a.Executable {
		if a, err = askPython(ctx, target); err != nil {
			return nil, err
		}
	}
	return a.python(path, folders)
}

// slowError is the error of a program that was killed because it took too long to start.
func slowError(limit time.Duration) error {
	return fmt.Errorf("it took longer than %v: this machine is too busy, so try again later", limit)
}

// askPython makes an interpreter describe itself.
func askPython(ctx context.Context, path string) (a answer, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "-I", "-c", selfReport)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return a, fmt.Errorf("cannot run %s: %w", path, cause)
		}
		return a, fmt.Errorf(
			"cannot run %s: %w: %s", path, err, strings.TrimSpace(stderr.String()),
		)
	}

	if stdout.Len() > maxAnswer {
		return a, fmt.Errorf(
			"cannot use %s: its report about its version and paths is longer than %d bytes",
			path, maxAnswer,
		)
	}
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
		return a, fmt.Errorf(
			"cannot use %s: cannot parse its report about its version and paths: %w", path, err,
		)
	}

	return a, nil
}

// python checks an interpreter's description and derives the files that its jail shows.
func (a answer) python(name string, folders []string) (*python, error) {
	if a.Implementation != "cpython" || a.Version[0] != 3 || a.Version[1] < 9 {
		return nil, fmt.Errorf(
			"tier local needs CPython 3.9 or newer, but %s is %s %d.%d: "+
				"name another interpreter with --python", name, a.Implementation, a.Version[0], a.Version[1],
		)
	}

	if !filepath.IsAbs(a.Executable) {
		return nil, fmt.Errorf(
			"cannot use %s: sys.executable is %q, not an absolute path", name, a.Executable,
		)
	}
	files, err := a.show(folders)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", name, err)
	}

	modules := pykernel.Modules()
	for folder, names := range a.Modules {
		if folder == "" || files.has(folder) { // built-in modules have none
			modules = append(modules, names...)
		}
	}
	for _, half := range a.Halves {
		modules = slices.DeleteFunc(
			modules, func(m string) bool { return slices.Contains(wholes[half], m) },
		)
	}

	return &python{
		path: a.program(), version: a.Version, shown: files, modules: tiers.ModuleSet(modules...),
	}, nil
}

// program returns the path that starts the interpreter. A virtual environment is found next to
// its link. Any other link leads away from the libraries.
func (a answer) program() string {
	if a.Prefix != a.BasePrefix {
		return a.Executable
	}
	if target, err := filepath.EvalSymlinks(a.Executable); err == nil {
		return target
	}
	return a.Executable
}

// show returns the files that the interpreter's jail shows: the folders of the system, the
// program as a file, the library folders of its prefixes, and the folders that the caller names.
func (a answer) show(folders []string) (*shown, error) {
	s := newShown()
	for _, folder := range folders {
		if err := s.addNamed(folder); err != nil {
			return nil, err
		}
	}

	build := a.showProgram(s)
	libraries := []string{"lib/" + a.versioned(), "lib64/" + a.versioned()}
	for _, prefix := range []string{a.Prefix, a.BasePrefix, a.ExecPrefix} {
		if s.homeIn(prefix) == "" {
			s.tryFolder(filepath.Join(prefix, "lib"))
			s.tryFolder(filepath.Join(prefix, "lib64"))
		}
		for _, library := range libraries {
			s.tryFolder(filepath.Join(prefix, library))
		}
		shared, _ := filepath.Glob(filepath.Join(prefix, "lib", "libpython*.so*")) // valid pattern
		for _, file := range shared {
			s.addFile(file)
		}
	}

	for _, path := range a.Paths {
		path = filepath.Clean(path)
		switch {
		case s.has(path):
		case path == build || isLibrary(path):
			s.tryFolder(path)
		default:
			s.hide(path, errors.New("it is on sys.path, but is not a library folder: "+
				"show it with --local-folder"))
		}
	}

	if !s.has(a.Library) {
		return nil, fmt.Errorf("its standard library %s cannot be shown to snippets (%s): "+
			"name another interpreter with --python", a.Library, strings.Join(s.hidden, "; "))
	}
	s.settle()
	return s, nil
}

// versioned returns the name of the standard library's folder below lib.
func (a answer) versioned() string {
	return fmt.Sprintf("python%d.%d", a.Version[0], a.Version[1])
}

// showProgram shows the interpreter, and the files next to it by which it finds its libraries. For
// an interpreter that runs where it was compiled, it returns the folder of modules, otherwise "".
func (a answer) showProgram(s *shown) (build string) {
	s.addFile(a.program())
	s.addFile(a.program() + "._pth")
	folder := filepath.Dir(a.program())
	s.addFile(filepath.Join(folder, "pyvenv.cfg"))
	s.addFile(filepath.Join(filepath.Dir(folder), "pyvenv.cfg"))
	if target, err := filepath.EvalSymlinks(a.program()); err == nil {
		s.addFile(target)
		folder = filepath.Dir(target)
	}

	name := filepath.Join(folder, "pybuilddir.txt")
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	s.addFile(name)
	s.tryFolder(filepath.Join(folder, "Modules")) // the build folder links to it
	return filepath.Join(folder, strings.TrimSpace(string(text)))
}

// isLibrary reports whether a folder belongs to a Python installation, by its name or the
// standard library in it.
func isLibrary(folder string) bool {
	switch filepath.Base(folder) {
	case "lib-dynload", "site-packages", "dist-packages":
		return true
	}
	_, err := os.Stat(filepath.Join(folder, "os.py"))
	return err == nil
}
