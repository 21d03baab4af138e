package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// python is an interpreter on the host.
type python struct {
	path    string
	version [3]int
	binds   []jail.Bind
	modules tiers.Modules
}

// selfReport makes an interpreter describe itself. It runs outside the jail, because no
// snippet is involved.
const selfReport = `
import importlib.util, json, os, pkgutil, sys, sysconfig
def found(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return False
paths = [p for p in sys.path if p and os.path.isdir(p)]
stdlib = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)
print(json.dumps({
    "implementation": sys.implementation.name, "version": sys.version_info[:3],
    "executable": sys.executable, "prefixes": sorted({sys.prefix, sys.base_prefix, sys.exec_prefix}),
    "paths": paths, "modules": sorted({m for m in stdlib if found(m)} | {m.name for m in pkgutil.iter_modules(paths)}),
    "halves": [m for m in ("_tkinter", "_curses", "_sqlite3", "_ssl", "_ctypes", "_lzma", "_bz2") if not found(m)],
}))
`

// wholes are modules of the standard library that need a half in C, which a system may lack.
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
	Prefixes       []string
	Paths          []string
	Modules        []string
	Halves         []string // the missing C halves of modules
}

const (
	probeTimeout = 20 * time.Second
	maxAnswer    = 4 << 20
)

// findPython finds the interpreter with that name and asks it for its modules.
func findPython(ctx context.Context, name string) (*python, error) {
	if name == "" {
		name = "python3"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf(
			"tier local needs CPython 3.9 or newer, but this host has no %s: install CPython, "+
				"or name an interpreter with --python",
			name,
		)
	}

	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "-I", "-c", selfReport)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf(
			"cannot run %s: %w: %s", path, err, strings.TrimSpace(stderr.String()),
		)
	}

	if stdout.Len() > maxAnswer {
		return nil, fmt.Errorf(
			"cannot use %s: its report about its version and paths is longer than %d bytes",
			path, maxAnswer,
		)
	}
	var a answer
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
		return nil, fmt.Errorf(
			"cannot use %s: cannot parse its report about its version and paths: %w", path, err,
		)
	}

	return a.python(path)
}

// python checks an interpreter's description and derives the binds of its jail.
func (a answer) python(name string) (*python, error) {
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
	for _, half := range a.Halves {
		a.Modules = slices.DeleteFunc(
			a.Modules, func(m string) bool { return slices.Contains(wholes[half], m) },
		)
	}

	p := &python{
		path:    a.Executable,
		version: a.Version,
		modules: tiers.ModuleSet(append(a.Modules, pykernel.Modules()...)...),
	}
	folders := []string{"/usr", "/lib", "/lib64", "/bin"}

	for _, folder := range slices.Concat(a.Prefixes, a.Paths, foldersOf(a.Executable)) {
		if filepath.IsAbs(folder) && folder != "/" {
			folders = append(folders, filepath.Clean(folder))
		}
	}
	p.binds = binds(folders)

	return p, nil
}

// foldersOf returns the folders of a program and of the targets of its links. The Python of
// a virtual environment is a link, and finds its packages next to the link.
func foldersOf(program string) []string {
	list := []string{filepath.Dir(program)}
	for range 10 {
		to, err := os.Readlink(program)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(program), to)
		}

		program = to
		list = append(list, filepath.Dir(program))
	}

	return list
}

// binds returns the existing folders, without those that lie in another.
func binds(folders []string) []jail.Bind {
	slices.Sort(folders)
	var list []jail.Bind
	for _, folder := range slices.Compact(folders) {
		if _, err := os.Stat(folder); err != nil {
			continue
		}
		if n := len(list); n > 0 && strings.HasPrefix(folder, list[n-1].Source+"/") {
			continue
		}
		list = append(list, jail.Bind{Source: folder})
	}

	return list
}
