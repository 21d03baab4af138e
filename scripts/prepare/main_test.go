package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/internal/plan/analyser/python"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// keyOf returns the key of a prepared.json: the hash of the image's sources.
func keyOf(t *testing.T, about []byte) string {
	t.Helper()
	var d struct{ Key string }
	if err := json.Unmarshal(about, &d); err != nil || d.Key == "" {
		t.Fatalf("prepared.json has no key: %v", err)
	}
	return d.Key
}

// TestTheCommittedImageIsWhatItsSourcesGive prepares the image again. An image of other sources
// only makes the start slower, so make image-verify rejects it, but this test does not.
func TestTheCommittedImageIsWhatItsSourcesGive(t *testing.T) {
	skip.UnderRace(t)
	committed := map[string][]byte{}
	for _, name := range []string{"prepared.json", "prepared.zst"} {
		data, err := os.ReadFile(filepath.Join("../..", folder, name))
		if err != nil {
			t.Fatal(err)
		}
		committed[name] = data
	}

	about, data, err := difference(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if keyOf(t, about) != keyOf(t, committed["prepared.json"]) {
		t.Skip("the committed image is of other sources: run make image before a release")
	}
	if !bytes.Equal(about, committed["prepared.json"]) || !bytes.Equal(data, committed["prepared.zst"]) {
		t.Error("the committed image is damaged: run make image")
	}
	startWithIt(t)
}

// startWithIt starts with an empty cache, and then with the cache that the first start has filled.
func startWithIt(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for range 2 {
		tier := wasm.New(wasm.Options{
			CacheDir: dir, Preload: python.Preload(),
			Progress: func(what string) { t.Errorf("the start is slow: %s", what) },
		})
		sandbox, err := tier.Open(t.Context(), tiers.Config{})
		if err != nil {
			t.Fatal(err)
		}
		result, err := sandbox.Run(t.Context(), tiers.Job{Source: "import json; print(json.dumps([1 + 1]))"})
		if err != nil || result.Stdout != "[2]\n" {
			t.Errorf("%q, %v", result.Stdout, err)
		}
		if err := errors.Join(sandbox.Close(), tier.Close()); err != nil {
			t.Error(err)
		}
	}
}
