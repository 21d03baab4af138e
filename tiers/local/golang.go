package local

import (
	"context"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/version"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/golang/features"
	"github.com/rlmhq/rlm/internal/golang/guest/build"
	"github.com/rlmhq/rlm/tiers"
)

// toolchain is the host's Go. Outside a jail it only compiles the standard library. For
// snippets, the compiler and the linker run in jails.
type toolchain struct {
	tool        build.Tool
	version     string // "go1.26"
	root, tools string

	mu      sync.Mutex        // guards the fields below, and compilations
	exports map[string]string // compiled packages, by import path
}

// usual lists the packages that are compiled before the first snippet.
const usual = "bufio bytes cmp container/heap context encoding/json errors fmt io iter maps math " +
	"math/rand os regexp slices sort strconv strings sync sync/atomic time unicode unicode/utf8"

// oldest is the oldest supported Go version: since 1.22, each iteration has its own loop variable.
const oldest = "go1.22"

// Deadlines for the host's Go. The standard library is compiled once for each version of Go and
// stored on disk.
const (
	askTimeout   = time.Minute // a busy machine is slow
	buildTimeout = 5 * time.Minute
)

// findGo finds the host's Go and queries its paths.
func findGo(ctx context.Context, name, cache string) (*toolchain, error) {
	if name == "" {
		name = "go"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("cannot run Go snippets: this host has no %s", name)
	}

	if cache == "" {
		if cache, err = os.UserCacheDir(); err != nil {
			return nil, fmt.Errorf(
				"cannot run Go snippets: cannot find a folder for compiled packages: %w", err,
			)
		}
		cache = filepath.Join(cache, "rlm", "go")
	}

	t := &toolchain{tool: build.Tool{Path: path, Cache: cache}, exports: map[string]string{}}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, slowError(askTimeout))
	defer cancel()
	said, err := t.tool.Command(ctx, "", "env", "GOROOT", "GOVERSION", "GOTOOLDIR")
	if err != nil {
		return nil, err
	}

	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) != 3 || !filepath.IsAbs(lines[2]) {
		return nil, fmt.Errorf(
			"cannot use %s: `go env` did not report GOROOT, GOVERSION and GOTOOLDIR", path,
		)
	}
	t.root, t.version, t.tools = lines[0], version.Lang(lines[1]), filepath.Clean(lines[2])
	if version.Compare(t.version, oldest) < 0 {
		return nil, fmt.Errorf(
			"cannot use %s: it is %s, older than %s", path, lines[1], oldest,
		)
	}

	for _, tool := range []string{"compile", "link"} {
		if _, err := os.Stat(filepath.Join(t.tools, tool)); err != nil {
			return nil, fmt.Errorf("cannot use %s: it has no %s: %w", path, tool, err)
		}
	}
	return t, nil
}

// provide compiles the given packages and their imports, and returns all compiled packages. It
// omits paths outside the standard library.
func (t *toolchain) provide(ctx context.Context, paths ...string) (map[string]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := len(t.exports) == 0 || t.isStale()
	if fresh {
		t.exports = map[string]string{}
		paths = append(paths, append(strings.Fields(usual), build.Runtime)...)
	}

	var wanted []string
	for _, path := range paths {
		_, have := t.exports[path]
		if info, err := os.Stat(filepath.Join(t.root, "src", path)); path == build.Runtime ||
			!have && err == nil && info.IsDir() && build.Importable(path) {
			wanted = append(wanted, path)
		}
	}

	if len(wanted) == 0 {
		return maps.Clone(t.exports), nil
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	if err := t.compile(ctx, wanted); err != nil {
		return nil, err
	}

	if fresh {
		if err := t.checkReadable(); err != nil {
			return nil, err
		}
	}
	return maps.Clone(t.exports), nil
}

// isStale reports whether a compiled package is gone, because the go command removes packages that
// were unused for days.
func (t *toolchain) isStale() bool {
	for _, name := range t.exports {
		if _, err := os.Stat(name); err != nil && name != "" {
			return true
		}
	}
	return false
}

// compile compiles packages and records their files.
func (t *toolchain) compile(ctx context.Context, paths []string) error {
	compiled, err := t.tool.Compile(ctx, t.version, paths)
	if err != nil {
		return err
	}
	for path, name := range compiled {
		t.exports[path] = name
		if name == "" {
			continue
		}
		// The guest's user must be able to read the packages, whatever the umask.
		err := errors.Join(os.Chmod(name, 0o644), os.Chmod(filepath.Dir(name), 0o755))
		if err != nil {
			return fmt.Errorf("cannot use the compiled package %s: %w", path, err)
		}
	}

	return os.Chmod(t.tool.Builds(), 0o755)
}

// checkReadable checks that this program can read the packages of the host's compiler, which may
// be newer.
func (t *toolchain) checkReadable() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot read packages of %s: %v", t.version, r)
		}
	}()
	open := func(path string) (io.ReadCloser, error) { return os.Open(t.exports[path]) }
	_, err = importer.ForCompiler(token.NewFileSet(), "gc", open).Import(build.Runtime)
	if err != nil {
		return fmt.Errorf("cannot read packages of %s: %w", t.version, err)
	}
	return nil
}

// goFinder finds the host's Go once for a tier.
type goFinder struct {
	goMu     sync.Mutex // guards the fields below
	goTools  *toolchain
	goFailed error
}

// golang returns the host's Go. It keeps the first result.
func (t *tier) golang(ctx context.Context) (*toolchain, error) {
	t.goMu.Lock()
	defer t.goMu.Unlock()
	if t.goTools == nil && t.goFailed == nil {
		tools, err := findGo(ctx, t.options.Go, t.options.GoCache)
		if ctx.Err() != nil {
			return nil, err // another context may last long enough
		}
		t.goTools, t.goFailed = tools, err
	}

	return t.goTools, t.goFailed
}

// withGo adds Go to the tier's description, unless Probe found no toolchain.
func (t *tier) withGo(info tiers.Info) tiers.Info {
	t.goMu.Lock()
	defer t.goMu.Unlock()
	if t.goFailed != nil {
		info.Version += "; no Go: " + t.goFailed.Error()
		return info
	}

	if tools := t.goTools; tools != nil {
		info.Version += fmt.Sprintf("; %s, %s", tools.version, tools.tool.Path)
	}
	info.Languages = append(info.Languages, tiers.Go)
	info.Features = append(info.Features, features.All()...)
	return info
}
