// Package cpython holds CPython as the wasm tier runs it: a WebAssembly module
// without data, and the memory image over which it runs, taken when the
// interpreter had started and had imported what snippets import.
//
// The files beside this one are made by scripts/wasm, which says how; the
// manifest says of what.
package cpython

import (
	_ "embed" // the artefacts
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/cpython/manifest"
)

//go:embed python.wasm.zst
var moduleFile []byte

//go:embed image.zst
var imageFile []byte

//go:embed manifest.json
var manifestFile []byte

//go:embed modules.txt
var moduleNames string

// Modules returns the names of the standard library's top-level modules that
// can be imported.
func Modules() []string { return strings.Fields(moduleNames) }

// decoded is part of the program: it cannot be wrong without the tests failing.
var decoded = mustDecode(manifestFile)

func mustDecode(data []byte) manifest.Manifest {
	var m manifest.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		panic("cpython: the embedded manifest: " + err.Error())
	}
	return m
}

// Manifest returns the manifest. Its maps are shared and must not be changed.
func Manifest() manifest.Manifest { return decoded }

// Module returns the WebAssembly module. It works only over a copy of the
// image, and counts its fuel in the exported global "fuel".
func Module() ([]byte, error) { return open(decoded.Module, moduleFile) }

// Image returns the memory image, a whole number of WebAssembly pages.
func Image() ([]byte, error) { return open(decoded.Image, imageFile) }

func open(a manifest.Artefact, file []byte) ([]byte, error) {
	data, err := a.Decompress(file)
	if err != nil {
		return nil, fmt.Errorf("cpython: %w", err)
	}
	return data, nil
}
