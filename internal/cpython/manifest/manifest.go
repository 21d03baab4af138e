// Package manifest describes the artefacts of package cpython. It is a separate package so
// that the program that builds them need not embed them.
package manifest

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// The names of the artefacts' files.
const (
	ModuleFile   = "python.wasm.zst"
	ImageFile    = "image.zst"
	ManifestFile = "manifest.json"
)

// PageSize is the size in bytes of a page of WebAssembly memory.
const PageSize = 64 * 1024

// Manifest describes the artefacts and their sources.
type Manifest struct {
	// Python is the interpreter's version, such as "3.13.5".
	Python string `json:"python"`
	// Module is the instrumented module without its data.
	Module Artefact `json:"module"`
	// Image is the memory over which the module runs.
	Image Artefact `json:"image"`
	// ImagePages is the size of the image in pages of WebAssembly memory. The
	// module declares fewer: its memory has to be allocated this large.
	ImagePages uint32 `json:"image_pages"`
	// StackPointer is the value of __stack_pointer that module and image share.
	StackPointer uint32 `json:"stack_pointer"`
	// FuelPoints is the number of places at which the code counts fuel.
	FuelPoints int `json:"fuel_points"`
	// Sources are the Debian versions of the source packages, by name.
	Sources map[string]string `json:"sources"`
	// Toolchain are the versions of the build tools, by name.
	Toolchain map[string]string `json:"toolchain"`
	// Flags are the options of the build's steps, by step.
	Flags map[string]string `json:"flags"`
	// Inputs are the SHA-256 hashes of packages and sources, by file name.
	Inputs map[string]string `json:"inputs"`
}

// Artefact describes one compressed file.
type Artefact struct {
	File             string `json:"file"`
	Size             int    `json:"size"`
	SHA256           string `json:"sha256"`
	CompressedSize   int    `json:"compressed_size"`
	CompressedSHA256 string `json:"compressed_sha256"`
}

// Decompress decompresses the bytes of an artefact's file. It returns an error if the result
// does not have the size and hash of the manifest, and never allocates more than that size.
func (a Artefact) Decompress(compressed []byte) ([]byte, error) {
	dec, err := zstd.NewReader(
		nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(a.Size)),
	)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.File, err)
	}
	defer dec.Close()
	data, err := dec.DecodeAll(compressed, make([]byte, 0, a.Size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.File, err)
	}
	if len(data) != a.Size {
		return nil, fmt.Errorf("%s holds %d bytes, not %d", a.File, len(data), a.Size)
	}

	return data, nil
}
