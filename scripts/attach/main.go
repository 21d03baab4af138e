// Command attach puts the machine code and the prepared image of tier wasm behind a program that
// was just built from this tree. The program then starts without unpacking and preparing them.
package main

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/rlmhq/rlm/internal/analyser/python"
	"github.com/rlmhq/rlm/internal/aot"
	"github.com/rlmhq/rlm/internal/attached"
	"github.com/rlmhq/rlm/internal/codecache"
	"github.com/rlmhq/rlm/internal/cpython"
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

// attach replaces the program. One for another system stays as it is: its parts can only be
// mapped on Linux, and the machine code must run here.
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

	blob, err := cpython.Code()
	if err != nil {
		fmt.Fprintf(os.Stderr, "attach: nothing is attached: %v\n", err)
		return nil
	}
	code, err := codePart(blob)
	if err != nil {
		return err
	}
	image, err := imagePart(ctx)
	if err != nil {
		return err
	}

	info, err := program.Stat()
	if err != nil {
		return err
	}

	to, err := os.CreateTemp(filepath.Dir(path), ".attach-")
	if err != nil {
		return err
	}
	err = errors.Join(attached.Write(to, program, code, image), to.Chmod(info.Mode()), to.Close())
	if err == nil {
		err = os.Rename(to.Name(), path) // a running program's file cannot be written
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}

	return check(ctx, path)
}

// check runs the program, which must not prepare anything.
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

func codePart(blob []byte) (attached.New, error) {
	head, code, err := aot.Split(blob)
	about := attached.Code{SHA256: cpython.MachineCode().Code[runtime.GOARCH].SHA256, Header: head}
	return attached.New{Name: attached.CodePart, About: about, Data: code}, err
}

// imagePart has tier wasm prepare the image into a cache of its own, and takes it from there.
func imagePart(ctx context.Context) (part attached.New, err error) {
	dir, err := os.MkdirTemp("", "attach-")
	if err != nil {
		return part, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tier := wasm.New(wasm.Options{CacheDir: dir, Engine: "aot", Preload: python.Preload()})
	if err := errors.Join(tier.Warm(ctx), tier.Close()); err != nil {
		return part, err
	}

	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cache, release, err := codecache.Open(ctx, dir, log, func(*codecache.Cache) bool { return true })
	if err != nil {
		return part, err
	}
	release()
	paths, err := filepath.Glob(filepath.Join(dir, codecache.ImageDir, "*"))
	if err != nil || len(paths) != 1 {
		return part, errors.Join(err, fmt.Errorf("%d images were prepared, not one", len(paths)))
	}

	isRead := cache.Fetch(paths[0], "", func(f *codecache.File) error {
		part, err = unpack(f)
		return err
	})
	if !isRead {
		return part, errors.New("cannot read the prepared image")
	}
	return part, nil
}

// unpack puts the zeros back that the cache leaves out, but not those at the beginning, where
// the guest's stack is.
func unpack(f *codecache.File) (part attached.New, err error) {
	var about struct {
		Size uint64
		Runs []struct{ Start, End uint64 }
	}
	if err := json.Unmarshal(f.Head.About, &about); err != nil {
		return part, err
	}
	memory := make([]byte, about.Size)
	w := &placer{}
	for _, run := range about.Runs {
		w.places = append(w.places, memory[run.Start:run.End])
	}
	if _, err := f.WriteTo(w); err != nil {
		return part, err
	}

	start := about.Runs[0].Start
	return attached.New{
		Name:  attached.ImagePart,
		About: attached.Image{Key: f.Head.Key, Start: start, Cached: f.Head.About},
		Data:  memory[start:],
	}, nil
}

// placer writes bytes to places, one after another.
type placer struct{ places [][]byte }

func (w *placer) Write(data []byte) (int, error) {
	written := 0
	for written < len(data) && len(w.places) > 0 {
		n := copy(w.places[0], data[written:])
		written += n
		if w.places[0] = w.places[0][n:]; len(w.places[0]) == 0 {
			w.places = w.places[1:]
		}
	}
	return written, nil
}
