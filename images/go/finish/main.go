//go:build linux

// Command finish runs in the image go that is being built, as root: it compiles the
// whole standard library and the first process of containers ahead, since nothing
// can be written later, and prints what the image has.
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

	"github.com/rlmhq/rlm/internal/gobuild"
	"github.com/rlmhq/rlm/internal/gotool"
)

// Where things are in the image. What is not below kept is dropped in the end.
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

func finish(ctx context.Context) error {
	tool := gotool.Tool{Path: command, Cache: cache}
	said, err := tool.Command(ctx, "", "env", "GOVERSION", "GOTOOLDIR", "GOROOT")
	if err != nil {
		return err
	}
	facts := strings.Split(strings.TrimSpace(said), "\n")
	if len(facts) != 3 {
		return fmt.Errorf("cannot understand what %s says of itself: %q", command, said)
	}
	has := gobuild.Toolchain{Tools: kept, Version: version.Lang(facts[0]), Arch: runtime.GOARCH, Exports: map[string]string{}}
	compiled, err := tool.Compile(ctx, has.Version, []string{"std", gotool.Runtime})
	if err != nil {
		return err
	}
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
	for _, name := range []string{"compile", "link"} {
		if err := copyFile(filepath.Join(kept, name), filepath.Join(facts[1], name), 0o755); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(kept, "zoneinfo.zip"), filepath.Join(facts[2], "lib/time/zoneinfo.zip"), 0o644); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := tool.Command(ctx, dir, "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(kept, "guest"), "./images/go/guest"); err != nil {
		return err
	}
	text, err := json.Marshal(has)
	if err == nil {
		err = os.WriteFile(filepath.Join(kept, "toolchain.json"), text, 0o644) //nolint:gosec // all read it
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"version": facts[0], "modules": []string{}})
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
		_ = out.Close() // it is not whole
		return fmt.Errorf("cannot copy %s: %w", from, err)
	}
	return out.Close()
}
