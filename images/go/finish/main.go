//go:build linux

// Command finish runs as root in the image go while that is built. It compiles the whole
// standard library and the first process of containers ahead, because nothing can be
// written later. It prints what the image has.
//
//	go run ./images/go/finish
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/version"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/rlmhq/rlm/internal/golang/guest/build"
)

// Where things are in the image. Only what is below kept stays.
const (
	kept    = "/usr/lib/rlm"
	command = "/usr/lib/go/bin/go"
	cache   = "/build"
)

func main() {
	if err := finish(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// finish compiles everything, describes the toolchain, and reports the image's version.
func finish(ctx context.Context) error {
	tool := build.Tool{Path: command, Cache: cache}
	said, err := tool.Command(ctx, "", "env", "GOVERSION", "GOTOOLDIR", "GOROOT")
	if err != nil {
		return err
	}
	facts := strings.Split(strings.TrimSpace(said), "\n")
	if len(facts) != 3 {
		return fmt.Errorf("cannot parse the output of %s env: %q", command, said)
	}
	goVersion, toolDir, root := facts[0], facts[1], facts[2]

	has := build.Toolchain{
		Tools: kept, Version: version.Lang(goVersion), Arch: runtime.GOARCH,
		Exports: map[string]string{},
	}
	compiled, err := tool.Compile(ctx, has.Version, []string{"std", build.Runtime})
	if err != nil {
		return err
	}

	if err := keepExports(&has, compiled); err != nil {
		return err
	}
	if err := keepTools(toolDir, root); err != nil {
		return err
	}
	if err := buildGuest(ctx, tool); err != nil {
		return err
	}
	if err := describeToolchain(&has); err != nil {
		return err
	}

	report := map[string]any{"version": goVersion, "modules": []string{}}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// keepExports keeps the compiled packages.
func keepExports(has *build.Toolchain, compiled map[string]string) error {
	for path, from := range compiled {
		if from == "" {
			has.Exports[path] = ""
			continue
		}
		has.Exports[path] = filepath.Join(kept, "std", path+".a")
		if err := copyFile(has.Exports[path], from, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// keepTools keeps what compiles and links, and the time zones.
func keepTools(toolDir, root string) error {
	for _, name := range []string{"compile", "link"} {
		from := filepath.Join(toolDir, name)
		if err := copyFile(filepath.Join(kept, name), from, 0o755); err != nil {
			return err
		}
	}
	zones := filepath.Join(root, "lib/time/zoneinfo.zip")
	return copyFile(filepath.Join(kept, "zoneinfo.zip"), zones, 0o644)
}

// buildGuest compiles the first process of containers.
func buildGuest(ctx context.Context, tool build.Tool) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	_, err = tool.Command(ctx, dir, "build", "-trimpath", "-ldflags", "-s -w",
		"-o", filepath.Join(kept, "guest"), "./images/go/guest")
	return err
}

// describeToolchain writes the file that the first process reads.
func describeToolchain(has *build.Toolchain) error {
	text, err := json.Marshal(has)
	if err != nil {
		return err
	}
	name := filepath.Join(kept, "toolchain.json")
	return os.WriteFile(name, text, 0o644) //nolint:gosec // all read it
}

// copyFile copies a file and makes the folders to it.
func copyFile(to, from string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // all read it
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()

	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close() // it is incomplete
		return fmt.Errorf("cannot copy %s: %w", from, err)
	}
	return out.Close()
}
