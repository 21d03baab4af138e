package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
	"github.com/rlmhq/rlm/scripts/wasm/internal/wasmbin"
)

// TestTheCommittedModulesPay checks the code of each module that is part of the program.
func TestTheCommittedModulesPay(t *testing.T) {
	python, err := cpython.Module()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string][]byte{"python": python}
	for _, folder := range []string{
		"graph/engine", "internal/data/documents/engine", "internal/data/tablefiles/engine",
		"internal/data/pageimages/engine",
	} {
		modules[folder] = readRustModule(t, folder)
	}

	for name, code := range modules {
		m, err := wasmbin.Parse(code)
		if err == nil {
			err = m.CheckFuel(yieldImport)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readRustModule reads a module built by scripts/wasm/rust.sh from its folder.
func readRustModule(t *testing.T, folder string) []byte {
	t.Helper()
	folder = filepath.Join("../../..", folder)
	text, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m rustmodule.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(filepath.Join(folder, m.Module.File))
	if err != nil {
		t.Fatal(err)
	}
	code, err := m.Module.Decompress(packed)
	if err != nil {
		t.Fatal(err)
	}
	return code
}
