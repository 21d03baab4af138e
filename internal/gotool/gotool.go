// Package gotool has a go command compile packages of the standard library, and
// the runtime of Go sessions, for package gobuild. No snippet is near.
//
// It is used on a host by tier local, and in an image that is being built; so it may
// import nothing but the standard library and package gorun.
package gotool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rlmhq/rlm/internal/gorun"
)

// Runtime is the import path that package gorun is compiled with.
const Runtime = "rlm/gorun"

// Tool is a go command.
type Tool struct {
	// Path is the command's, Cache the folder in which it works and keeps what it
	// has compiled.
	Path, Cache string
}

// Builds is the folder of what was compiled.
func (t Tool) Builds() string { return filepath.Join(t.Cache, "build") }

// Command runs the go command in a folder, with nothing of the host's settings, and
// returns what it printed.
func (t Tool) Command(ctx context.Context, dir string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, t.Path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = []string{
		"GOCACHE=" + t.Builds(), "HOME=" + t.Cache, "PATH=/usr/bin:/bin", "GOENV=off", "GOTOOLCHAIN=local",
		"GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0", "GOTELEMETRY=off",
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("cannot run %s %s: %w: %s", t.Path, args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Compile compiles packages, [Runtime] may be among them, and what they need. It
// returns where each is, empty for unsafe, which needs no file. A path without a
// package is not among them. language is the module's, "go1.26".
func (t Tool) Compile(ctx context.Context, language string, paths []string) (map[string]string, error) {
	dir, err := t.module(language)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a copy of what is embedded
	args := append([]string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, paths...)
	said, err := t.Command(ctx, dir, args...)
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

// module writes the module with package gorun.
func (t Tool) module(language string) (string, error) {
	if err := os.MkdirAll(t.Cache, 0o755); err != nil {
		return "", fmt.Errorf("cannot compile the standard library: %w", err)
	}
	dir, err := os.MkdirTemp(t.Cache, "module-")
	if err != nil {
		return "", fmt.Errorf("cannot compile the standard library: %w", err)
	}
	err = os.CopyFS(filepath.Join(dir, "gorun"), gorun.Source)
	if err == nil {
		err = os.Remove(filepath.Join(dir, "gorun", "source.go"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module rlm\n\ngo "+strings.TrimPrefix(language, "go")+"\n"), 0o600)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("cannot compile the standard library: %w", err), os.RemoveAll(dir))
	}
	return dir, nil
}
