package build

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rlmhq/rlm/internal/golang/guest/run"
	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// Tool is a go command.
type Tool struct {
	// Path is the path of the command. Cache is the command's working folder, which also caches
	// compiled packages.
	Path, Cache string
}

// Builds returns the folder of compiled packages.
func (t Tool) Builds() string { return filepath.Join(t.Cache, "build") }

// Command runs the go command in a folder, without the host's settings, and returns its output.
func (t Tool) Command(ctx context.Context, dir string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, t.Path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = []string{
		"GOCACHE=" + t.Builds(),
		"HOME=" + t.Cache,
		"PATH=/usr/bin:/bin", "GOENV=off", "GOTOOLCHAIN=local", "GOWORK=off", "GOPROXY=off",
		"GOFLAGS=-mod=mod", "CGO_ENABLED=0", "GOTELEMETRY=off",
	}

	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return "", fmt.Errorf("cannot run %s %s: %w", t.Path, args[0], cause)
		}
		return "", fmt.Errorf(
			"cannot run %s %s: %w: %s", t.Path, args[0], err, strings.TrimSpace(stderr.String()),
		)
	}
	return stdout.String(), nil
}

// Compile compiles packages, which may include [Runtime], with their imports. It returns the file
// of each package, which is empty for unsafe, and omits paths that are not packages. language is
// the language version of the module, such as "go1.26".
func (t Tool) Compile(
	ctx context.Context, language string, paths []string,
) (map[string]string, error) {
	dir, err := t.writeModule(language)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the standard library: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a copy of embedded files

	args := []string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	said, err := t.Command(ctx, dir, append(args, paths...)...)
	if err != nil {
		return nil, err
	}

	exports := map[string]string{}
	for line := range strings.Lines(said) {
		path, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if name != "" || path == "unsafe" {
			exports[path] = name
		}
	}

	return exports, nil
}

// module is the module path of the sources that are compiled into programs.
const module = "github.com/rlmhq/rlm"

// Runtime is the import path of the runtime package compiled into programs.
const Runtime = module + "/internal/golang/guest/run"

// runtimeSources are the packages of the module that make up the runtime.
var runtimeSources = map[string]embed.FS{
	"internal/snippet/frame":        frame.Source,
	"internal/snippet/session/wire": wire.Source,
	"internal/golang/guest/run":     run.Source,
}

// writeModule writes the module with the runtime into a new folder.
func (t Tool) writeModule(language string) (string, error) {
	if err := os.MkdirAll(t.Cache, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(t.Cache, "module-")
	if err != nil {
		return "", err
	}

	text := "module " + module + "\n\ngo " + strings.TrimPrefix(language, "go") + "\n"
	err = os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600)
	for folder, files := range runtimeSources {
		into := filepath.Join(dir, filepath.FromSlash(folder))
		if err == nil {
			err = os.CopyFS(into, files)
		}
		if err == nil {
			err = os.Remove(filepath.Join(into, "source.go")) // needed only by images
		}
	}

	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}
