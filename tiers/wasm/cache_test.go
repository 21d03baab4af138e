package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// cachedImage fills a cache directory and returns its image file.
func cachedImage(t *testing.T, dir string) string {
	t.Helper()
	check(t, dir)
	images, err := filepath.Glob(filepath.Join(dir, "image", "*"))
	if err != nil || len(images) != 1 {
		t.Fatalf("the cache has the images %v (%v), want one", images, err)
	}
	return images[0]
}

// check opens a tier on the cache directory and runs a snippet.
func check(t *testing.T, dir string) {
	t.Helper()
	var told []string
	tier := wasm.New(
		wasm.Options{CacheDir: dir, Progress: func(what string) { told = append(told, what) }},
	)
	defer tier.Close()
	s, err := tier.Open(context.Background(), tiers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runOK(t, s, "print(1+1)")
	t.Logf("told: %v", told)
}

// TestDamagedCache prepares anew whatever is wrong with the cached image.
func TestDamagedCache(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	dir := t.TempDir()
	path := cachedImage(t, dir)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty":           {},
		"a head, cut off": whole[:100],
		"cut off":         whole[:len(whole)-4096],
		"longer":          append(append([]byte(nil), whole...), 0),
		"another's key":   []byte(strings.Replace(string(whole), `"Key":"`, `"Key":"0`, 1)),
		"not JSON":        append([]byte("x"), whole[1:]...),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			check(t, dir)
			if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, whole) {
				t.Errorf("the image was not made anew (%v)", err)
			}
		})
	}
}

// TestDamagedCode compiles anew when the cached code cannot be read.
func TestDamagedCode(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	dir := t.TempDir()
	check(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "code", "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the cache has no code: %v", err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check(t, dir)
}

// TestCacheOfOthers refuses a cache in which somebody else may have put code.
func TestCacheOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}

	for name, prepare := range map[string]func(base, dir string) error{
		"others may write to the directory": func(_, dir string) error { return os.Chmod(dir, 0o777) },
		"others may write to compiled code": func(_, dir string) error {
			return plant(filepath.Join(dir, "code", "wazero", "c0de"), 0o666)
		},
		"others may write to an image": func(_, dir string) error {
			return plant(filepath.Join(dir, "image", "c0de"), 0o622)
		},
		"others may rename the directory": func(base, _ string) error { return os.Chmod(base, 0o777) },
		"the code is a link": func(_, dir string) error {
			return errors.Join(
				os.Mkdir(filepath.Join(dir, "code"), 0o700),
				os.Symlink(filepath.Join(dir, "..", "elsewhere"), filepath.Join(dir, "code", "wazero")),
			)
		},
		"the code belongs to another user": func(_, dir string) error {
			path := filepath.Join(dir, "code", "wazero", "c0de")
			if err := plant(path, 0o644); err != nil || os.Geteuid() != 0 {
				return errors.Join(err, os.Chmod(dir, 0o777))
			}
			return os.Chown(path, 12345, 0)
		},
	} {
		base := filepath.Join(t.TempDir(), "base")
		dir := filepath.Join(base, "cache")
		if err := errors.Join(os.MkdirAll(dir, 0o700), prepare(base, dir)); err != nil {
			t.Fatal(err)
		}
		if err := wasm.CheckCacheDir(dir); err == nil ||
			!strings.Contains(err.Error(), "name an empty directory of your own") {
			t.Errorf("%s: CheckCacheDir: %v", name, err)
		}

		tier := wasm.New(wasm.Options{CacheDir: dir})
		err := tier.Warm(context.Background())
		if err == nil || !strings.Contains(err.Error(), "rlm runs the code in it") {
			t.Errorf("%s: %v", name, err)
		}
		if err := tier.Close(); err != nil {
			t.Error(err)
		}
	}
}

// plant writes a file with a mode, whatever the process's mask is.
func plant(path string, mode os.FileMode) error {
	return errors.Join(
		os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600), os.Chmod(path, mode),
	)
}

// TestAPrivateCacheIsAccepted has parents that are shared as on common systems.
func TestAPrivateCacheIsAccepted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	base := filepath.Join(t.TempDir(), "base")
	dir := filepath.Join(base, "cache")
	for _, mode := range []os.FileMode{0o700, 0o755, 0o775, 0o777 | os.ModeSticky} {
		if err := errors.Join(os.MkdirAll(base, 0o700), os.Chmod(base, mode)); err != nil {
			t.Fatal(err)
		}
		if err := wasm.CheckCacheDir(dir); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	if err := wasm.CheckCacheDir(filepath.Join(base, "link")); err != nil {
		t.Errorf("a link: %v", err)
	}
}

// TestUnusableCacheDirectory says which directory is meant.
func TestUnusableCacheDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tier := wasm.New(wasm.Options{CacheDir: file})
	defer tier.Close()
	if err := tier.Warm(context.Background()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}

// TestNoCache prepares in memory.
func TestNoCache(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	check(t, "")
}

// TestOneOfManyPrepares: what starts at the same time with an empty cache waits for
// the first to prepare.
func TestOneOfManyPrepares(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	dir := t.TempDir()
	var prepared atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			tier := wasm.New(
				wasm.Options{CacheDir: dir, Progress: func(string) { prepared.Add(1) }},
			)
			if err := errors.Join(tier.Warm(t.Context()), tier.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := prepared.Load(); n != 1 {
		t.Errorf("%d of them prepared", n)
	}
}
