package wasm

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// probe is Python that leaves a text in the prepared image.
const probe = "import sys; sys.probe = 'the genuine text'"

// says prepares a tier from the cache directory and returns what a snippet finds in its
// image, and the log.
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

// TestPlantedImage puts another text into the cached image. Snippets never see it, unless the
// file has the tags that only the cache's user can make. That is the control: without the
// tags, the planted image would run.
func TestPlantedImage(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	const genuine, planted = "the genuine text", "the planted text"
	dir := t.TempDir()
	if text, _ := says(t, dir); text != genuine {
		t.Fatalf("the image says %q", text)
	}
	path, head, data := onlyFile(t, dir, imageDir)
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
	if text, logged := says(t, dir); text != genuine || !strings.Contains(logged, errChanged.Error()) {
		t.Errorf("the image says %q, the log %s", text, logged)
	}

	head.Tags = nil
	if err := theSeal(t, dir).write(path, head, poisoned); err != nil {
		t.Fatal(err)
	}
	if text, logged := says(t, dir); text != planted || logged != "" {
		t.Errorf("the control says %q, the log %s", text, logged)
	}
}

// TestPlantedCode gives the cache code that was never compiled. wazero does not see it, unless
// it has the right tags.
func TestPlantedCode(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	const refused = "cannot use the cached code"
	dir := t.TempDir()
	says(t, dir)
	path, head, _ := onlyFile(t, dir, codeDir)
	rubbish := bytes.Repeat([]byte("rubbish "), 1<<12)

	if err := os.WriteFile(path, rubbish, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, logged := says(t, dir); strings.Contains(logged, refused) ||
		!strings.Contains(logged, path) {
		t.Errorf("the log says %s", logged)
	}

	head.Tags = nil
	if err := theSeal(t, dir).write(path, head, rubbish); err != nil {
		t.Fatal(err)
	}
	if _, logged := says(t, dir); !strings.Contains(logged, refused) {
		t.Errorf("the control was not used, the log says %s", logged)
	}
	if _, logged := says(t, dir); logged != "" {
		t.Errorf("the code was not made anew: %s", logged)
	}
}

// onlyFile reads the only file in a folder of a cache.
func onlyFile(t *testing.T, dir, folder string) (path string, head cachedHead, data []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache has %v (%v)", files, err)
	}

	var all bytes.Buffer
	e := engine{
		options: Options{CacheDir: dir, Preload: probe, Log: slog.New(slog.DiscardHandler)},
		seal:    theSeal(t, dir),
	}
	d := e.newDesk()
	defer d.remove()
	for _, key := range []string{e.imageKey(), d.codeKey()} {
		c, err := e.seal.open(files[0], key)
		if err != nil {
			continue
		}
		_, err = c.WriteTo(&all)
		if err = errors.Join(err, c.file.Close()); err != nil {
			t.Fatal(err)
		}
		return files[0], c.head, all.Bytes()
	}
	t.Fatalf("cannot read %s", files[0])
	return "", cachedHead{}, nil
}

func theSeal(t *testing.T, dir string) *seal {
	t.Helper()
	s, err := readSeal(dir)
	if err != nil || s == nil {
		t.Fatalf("the cache has no key (%v)", err)
	}
	return s
}
