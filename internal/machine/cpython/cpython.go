// Package cpython contains the CPython of tier wasm: a WebAssembly module without data, and the
// memory image over which it runs. The image was taken after the interpreter had started and had
// imported the modules that snippets use.
//
// scripts/wasm builds the artefacts in this folder. The manifest lists their sources.
package cpython

import (
	_ "embed" // the artefacts
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/machine/artefact"
	"github.com/rlmhq/rlm/internal/machine/cpython/manifest"
)

//go:embed python.wasm.zst
var moduleFile []byte

//go:embed image.zst
var imageFile []byte

//go:embed manifest.json
var manifestFile []byte

//go:embed modules.txt
var moduleNames string

// Modules returns the names of the importable top-level modules of the standard library.
func Modules() []string { return strings.Fields(moduleNames) }

// decoded is the embedded manifest. The tests ensure that it is valid.
var decoded = mustDecode[manifest.Manifest](manifestFile)

// Manifest returns the manifest. Do not change its maps: they are shared.
func Manifest() manifest.Manifest { return decoded }

// Module returns the WebAssembly module. It runs only over a copy of the image, and decrements the
// exported global "fuel".
func Module() ([]byte, error) { return open(decoded.Module, moduleFile) }

// Image returns the memory image, a whole number of WebAssembly pages.
func Image() ([]byte, error) { return open(decoded.Image, imageFile) }

// ImageInto writes the memory image to the start of memory.
func ImageInto(memory []byte) error {
	if err := decoded.Image.DecompressInto(memory, imageFile); err != nil {
		return fmt.Errorf("cpython: %w", err)
	}
	return nil
}

func open(a artefact.Artefact, file []byte) ([]byte, error) {
	data, err := a.Decompress(file)
	if err != nil {
		return nil, fmt.Errorf("cpython: %w", err)
	}
	return data, nil
}
