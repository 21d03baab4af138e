package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// cachedFile returns the only file in a folder of a cache directory.
func cachedFile(t *testing.T, dir, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache has the files %v (%v), want one", files, err)
	}
	return files[0]
}

// check opens a tier on the cache directory and runs a snippet. It reports whether the tier had
// to prepare, and returns its log.
func check(t *testing.T, dir string) (prepared bool, logged string) {
	t.Helper()
	var log bytes.Buffer
	tier := wasm.New(wasm.Options{
		CacheDir: dir, Engine: "wazero", Progress: func(string) { prepared = true },
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	s, err := tier.Open(context.Background(), tiers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	runOK(t, s, "print(1+1)")
	if err := errors.Join(s.Close(), tier.Close()); err != nil { // Close waits for the cache
		t.Error(err)
	}

	return prepared, log.String()
}

// TestDamagedCache checks that damaged parts of the cache are prepared again, and only once.
func TestDamagedCache(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	dir := t.TempDir()
	check(t, dir)
	for _, folder := range []string{"image", "code"} {
		path := cachedFile(t, dir, folder)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{
			"empty":        {},
			"cut off":      whole[:len(whole)-4096],
			"a bit in it":  flip(whole, len(whole)/2),
			"its last bit": flip(whole, len(whole)-1),
		} {
			t.Run(folder+" "+name, func(t *testing.T) {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				prepared, logged := check(t, dir)
				if !prepared || !strings.Contains(logged, path) {
					t.Errorf("prepared: %v, log: %s", prepared, logged)
				}
				if prepared, logged = check(t, dir); prepared || logged != "" {
					t.Errorf("then prepared: %v, log: %s", prepared, logged)
				}
			})
		}
	}
}

// flip returns data with a changed bit at offset at.
func flip(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 1
	return data
}

// TestDamagedCacheOfMany checks that several tiers that find a damaged image at the same time
// repair the cache.
func TestDamagedCacheOfMany(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	dir := t.TempDir()
	check(t, dir)
	path := cachedFile(t, dir, "image")
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}

	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { check(t, dir) })
	}
	all.Wait()
	if prepared, logged := check(t, dir); prepared || logged != "" {
		t.Errorf("afterwards prepared: %v, log: %s", prepared, logged)
	}
}

// TestLostKey checks that everything is prepared again without the key, because nothing in the
// cache can then be trusted.
func TestLostKey(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	dir := t.TempDir()
	check(t, dir)
	key := filepath.Join(dir, "key")
	for name, lose := range map[string]func() error{
		"removed":  func() error { return os.Remove(key) },
		"replaced": func() error { return os.WriteFile(key, make([]byte, 32), 0o600) },
		"cut off":  func() error { return os.Truncate(key, 31) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := lose(); err != nil {
				t.Fatal(err)
			}
			if prepared, _ := check(t, dir); !prepared {
				t.Errorf("%s: the cache was used", name)
			}
			if prepared, logged := check(t, dir); prepared || logged != "" {
				t.Errorf("%s: then prepared: %v, log: %s", name, prepared, logged)
			}
		})
	}
}

// TestLeftFolders checks that folders that a killed process left are removed, but not those that
// another process uses.
func TestLeftFolders(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	dir := t.TempDir()
	old, young := filepath.Join(dir, "rlm-work-1"), filepath.Join(dir, "rlm-work-2")
	long := time.Now().Add(-2 * time.Hour)
	err := errors.Join(
		plant(filepath.Join(old, "wazero", "c0de"), 0o600), os.Chtimes(old, long, long),
		plant(filepath.Join(young, "wazero", "c0de"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}

	check(t, dir)
	left, err := filepath.Glob(filepath.Join(dir, "rlm-work-*"))
	if err != nil || len(left) != 1 || left[0] != young {
		t.Errorf("%v are left (%v)", left, err)
	}
}

// TestForeignCachesAreRefused checks that a cache into which someone else may have put code is
// rejected.
func TestForeignCachesAreRefused(t *testing.T) {
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
		"others may read the key": func(_, dir string) error {
			return plant(filepath.Join(dir, "key"), 0o640)
		},
		"the key is a link": func(_, dir string) error {
			return os.Symlink(filepath.Join(dir, "..", "elsewhere"), filepath.Join(dir, "key"))
		},
		"the key is a directory": func(_, dir string) error {
			return os.Mkdir(filepath.Join(dir, "key"), 0o700)
		},
		"the code belongs to another user": func(_, dir string) error {
			path := filepath.Join(dir, "code", "wazero", "c0de")
			if err := plant(path, 0o644); err != nil || os.Geteuid() != 0 {
				return errors.Join(err, os.Chmod(dir, 0o777))
			}
			return os.Chown(path, 12345, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(t.TempDir(), "base")
			dir := filepath.Join(base, "cache")
			if err := errors.Join(os.MkdirAll(dir, 0o700), prepare(base, dir)); err != nil {
				t.Fatal(err)
			}
			if err := codecache.Check(dir); err == nil ||
				!strings.Contains(err.Error(), "name an empty directory of your own") {
				t.Errorf("%s: Check: %v", name, err)
			}

			tier := wasm.New(wasm.Options{CacheDir: dir})
			err := tier.Warm(context.Background())
			if err == nil || !strings.Contains(err.Error(), "rlm runs the code in it") {
				t.Errorf("%s: %v", name, err)
			}
			if err := tier.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// plant writes a file with a mode, whatever the process's umask.
func plant(path string, mode os.FileMode) error {
	return errors.Join(
		os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600), os.Chmod(path, mode),
	)
}

// TestAPrivateCacheIsAccepted checks a private cache whose parent folder is shared as on common
// systems.
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
		if err := codecache.Check(dir); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	if err := codecache.Check(filepath.Join(base, "link")); err != nil {
		t.Errorf("a link: %v", err)
	}
}

// TestUnusableCacheDirectory checks that the error names the directory.
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

// TestNoCache checks that a tier without a cache prepares in memory.
func TestNoCache(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	check(t, "none")
}

// TestZeroOptionsKeepTheCache checks that with zero options, the tiers of two simulated processes
// share the user's cache.
func TestZeroOptionsKeepTheCache(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, home)
	}
	var prepared bool
	for _, want := range []bool{true, false} {
		prepared = false
		tier := wasm.New(wasm.Options{Progress: func(string) { prepared = true }})
		if err := errors.Join(tier.Warm(t.Context()), tier.Close()); err != nil {
			t.Fatal(err)
		}
		if prepared != want {
			t.Errorf("prepared: %v, want %v", prepared, want)
		}
	}

	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cachedFile(t, filepath.Join(dir, "rlm"), "image")
}

// TestOneOfManyPrepares checks that tiers that start concurrently with an empty cache wait while
// the first one prepares.
func TestOneOfManyPrepares(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	dir := t.TempDir()
	var prepared atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			tier := wasm.New(
				wasm.Options{CacheDir: dir, Engine: "wazero", Progress: func(string) { prepared.Add(1) }},
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
