package codecache

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
)

// compiled compiles an empty module with a cache and returns the log. It reports whether the code
// was compiled rather than loaded.
func compiled(t *testing.T, dir string) (isNew bool, logged string) {
	t.Helper()
	var log bytes.Buffer
	cache, release, err := Open(t.Context(), dir, slog.New(slog.NewTextHandler(&log, nil)),
		func(*Cache) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	defer release()

	code, err := cache.Compile(t.Context(), Module{
		ID:       "empty",
		Read:     func() ([]byte, error) { return []byte("\x00asm\x01\x00\x00\x00"), nil },
		Import:   func(context.Context, wazero.Runtime) error { return nil },
		Announce: func() { isNew = true },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := code.Close(); err != nil {
		t.Error(err)
	}
	return isNew, log.String()
}

// TestPlantedCode adds code to the cache that was never compiled. wazero must not receive it. In
// the control, the code has tags that only the cache's user can create.
func TestPlantedCode(t *testing.T) {
	const refused = "cannot use the cached code"
	dir := t.TempDir()
	if isNew, logged := compiled(t, dir); !isNew || logged != "" {
		t.Fatalf("compiled: %v, log: %s", isNew, logged)
	}
	if isNew, logged := compiled(t, dir); isNew || logged != "" {
		t.Fatalf("then compiled: %v, log: %s", isNew, logged)
	}
	files, err := filepath.Glob(filepath.Join(dir, CodeDir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache has %v (%v)", files, err)
	}
	path := files[0]

	seal, err := readSeal(dir)
	if err != nil || seal == nil {
		t.Fatalf("the cache has no key (%v)", err)
	}
	cache := Cache{Dir: dir, Log: slog.New(slog.DiscardHandler), seal: seal}
	desk := cache.newDesk()
	key := desk.codeKey("empty")
	desk.remove()
	var head Head
	cache.Fetch(path, key, func(f *File) error {
		head = f.Head
		return nil
	})

	rubbish := bytes.Repeat([]byte("rubbish "), 1<<12)
	if err := os.WriteFile(path, rubbish, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, logged := compiled(t, dir); strings.Contains(logged, refused) || !strings.Contains(logged, path) {
		t.Errorf("the log says %s", logged)
	}

	head.Tags = nil
	cache.Store(path, head, rubbish)
	if _, logged := compiled(t, dir); !strings.Contains(logged, refused) {
		t.Errorf("the control was not used, the log says %s", logged)
	}
	if _, logged := compiled(t, dir); logged != "" {
		t.Errorf("the code was not made anew: %s", logged)
	}
}

// TestSweepLeavesFoldersOfTheUser checks that a sweep keeps other files in the cache's folder.
func TestSweepLeavesFoldersOfTheUser(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-2 * deskAge)
	own := []string{
		filepath.Join(dir, "project", "new-feature", "text"), filepath.Join(dir, "work-notes", "text"),
		filepath.Join(dir, CodeDir, "new-folder", "text"),
	}
	unfinished := filepath.Join(dir, CodeDir, newPrefix+"1")
	for _, path := range append(own, unfinished) {
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600),
			os.Chtimes(path, long, long), os.Chtimes(filepath.Dir(path), long, long))
		if err != nil {
			t.Fatal(err)
		}
	}

	(&Cache{Dir: dir}).sweep()
	for _, path := range own {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(unfinished); err == nil {
		t.Error("an unfinished file stays")
	}
}
