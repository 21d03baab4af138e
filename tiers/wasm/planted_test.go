package wasm

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// probe is Python code that leaves a string in the prepared image.
const probe = "import sys; sys.probe = 'the genuine text'"

// says prepares a tier from the cache directory. It returns the string that a snippet finds in the
// tier's image, and the log.
func says(t *testing.T, dir string) (text, logged string) {
	t.Helper()
	var log bytes.Buffer
	tier := New(Options{
		CacheDir: dir, Preload: probe, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	defer tier.Close()
	s, err := tier.Open(t.Context(), tiers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	r, err := s.Run(t.Context(), tiers.Job{Source: "import sys; print(sys.probe)"})
	if err != nil || r.Status != tiers.StatusOK {
		t.Fatalf("%s %+v (%v)", r.Status, r.Exception, err)
	}
	return strings.TrimSpace(r.Stdout), log.String()
}

// TestPlantedImage puts a different string into the cached image, and checks that snippets find it
// only if the file has the tags that only the cache's user can make. The case with the tags is the
// control: without a check of tags, the planted image would run.
func TestPlantedImage(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	const genuine, planted = "the genuine text", "the planted text"
	dir := t.TempDir()
	if text, _ := says(t, dir); text != genuine {
		t.Fatalf("the image says %q", text)
	}
	path, cache, head, data := imageFile(t, dir)
	poisoned := bytes.ReplaceAll(data, []byte(genuine), []byte(planted))
	if bytes.Equal(poisoned, data) {
		t.Fatal("the text is not in the image")
	}

	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	start := len(whole) - len(data)
	if err := os.WriteFile(path, append(whole[:start:start], poisoned...), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, logged := says(t, dir); text != genuine || !strings.Contains(logged, "it is not what rlm has written") {
		t.Errorf("the image says %q, the log %s", text, logged)
	}

	head.Tags = nil
	cache.Store(path, head, poisoned)
	if text, logged := says(t, dir); text != planted || logged != "" {
		t.Errorf("the control says %q, the log %s", text, logged)
	}
}

// imageFile reads the only image of a cache.
func imageFile(
	t *testing.T, dir string,
) (path string, cache *codecache.Cache, head codecache.Head, data []byte) {
	t.Helper()
	e := engine{options: Options{CacheDir: dir, Preload: probe}}
	path = e.imagePath(e.imageKey())
	cache, release, err := codecache.Open(t.Context(), dir, slog.New(slog.DiscardHandler),
		func(*codecache.Cache) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	release()

	var all bytes.Buffer
	isRead := cache.Fetch(path, e.imageKey(), func(f *codecache.File) error {
		head = f.Head
		_, err := f.WriteTo(&all)
		return err
	})
	if !isRead {
		t.Fatalf("cannot read %s", path)
	}
	return path, cache, head, all.Bytes()
}
