// Command attach appends the machine code and the prepared image of tier wasm to a program that was
// just built from this tree. It also appends the machine code of the Rust modules. The program then
// starts without unpacking, preparing or compiling these parts.
package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	_ "github.com/rlmhq/rlm/graph" // links its module
	_ "github.com/rlmhq/rlm/internal/data/documents"
	_ "github.com/rlmhq/rlm/internal/data/pageimages"
	_ "github.com/rlmhq/rlm/internal/data/tablefiles"
	"github.com/rlmhq/rlm/internal/machine/attached"
	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
	"github.com/rlmhq/rlm/internal/plan/analyser/python"
	"github.com/rlmhq/rlm/tiers/wasm"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: attach PROGRAM")
		os.Exit(2)
	}
	if err := attach(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "attach:", err)
		os.Exit(1)
	}
}

// attach replaces the program. It leaves a program for another system unchanged, because the parts
// can be mapped only on Linux, and the machine code must run here.
func attach(ctx context.Context, path string) error {
	program, err := os.Open(path)
	if err != nil {
		return err
	}
	defer program.Close()
	if !isForHere(program) {
		fmt.Fprintf(os.Stderr, "attach: %s is not for this system: nothing is attached\n", path)
		return nil
	}

	if _, err := cpython.Code(); err != nil {
		fmt.Fprintf(os.Stderr, "attach: nothing is attached: %v\n", err)
		return nil
	}
	tier := wasm.New(wasm.Options{CacheDir: "none", Engine: "aot", Preload: python.Preload()})
	defer func() { _ = tier.Close() }() // only the program matters
	parts, err := tier.(interface {
		Parts(ctx context.Context) ([]attached.New, error)
	}).Parts(ctx)
	if err != nil {
		return err
	}

	modules, err := compileModules(ctx)
	if err != nil {
		return err
	}
	parts = append(parts, modules...)

	info, err := program.Stat()
	if err != nil {
		return err
	}

	to, err := os.CreateTemp(filepath.Dir(path), ".attach-")
	if err != nil {
		return err
	}
	err = errors.Join(attached.Write(to, program, parts...), to.Chmod(info.Mode()), to.Close())
	if err == nil {
		err = os.Rename(to.Name(), path) // the file of a running program cannot be written
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}

	return check(ctx, path)
}

// compileModules returns the code of the modules. The cache of rlm keeps the code for the next
// build.
func compileModules(ctx context.Context) ([]attached.New, error) {
	if dir, err := codecache.Find(os.Getenv("RLM_CACHE_DIR")); err == nil && dir != "" {
		if parts, err := rustmodule.Parts(ctx, dir); err == nil {
			return parts, nil
		}
	}

	dir, err := os.MkdirTemp("", "attach-") // for example, because the cache cannot be written
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return rustmodule.Parts(ctx, dir)
}

// check runs the program, which must start without preparing anything.
func check(ctx context.Context, path string) error {
	home, err := os.MkdirTemp("", "attach-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }()
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}

	cmd := exec.CommandContext(ctx, path, "exec", "--tier", "wasm", "-c", "print(6 * 7)")
	cmd.Env = []string{"HOME=" + home, "XDG_CACHE_HOME=" + home}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "42\n" {
		return fmt.Errorf("the program does not work with its parts: %w: %s", err, out)
	}

	return filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = fmt.Errorf("the program does not use its parts: it has written %s", path)
		}
		return err
	})
}

// machines are the architectures for which the tree has machine code.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

func isForHere(program *os.File) bool {
	file, err := elf.NewFile(program)
	return err == nil && runtime.GOOS == "linux" && file.Machine == machines[runtime.GOARCH]
}
