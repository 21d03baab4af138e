// Package manifest describes the artefacts of package cpython. It is a separate package so that the
// program that builds the artefacts need not embed them.
package manifest

import "github.com/rlmhq/rlm/internal/machine/artefact"

// These are the names of the artefacts' files.
const (
	ModuleFile      = "python.wasm.zst"
	ImageFile       = "image.zst"
	ManifestFile    = "manifest.json"
	MachineCodeFile = "code.json"
)

// PageSize is the size of a page of WebAssembly memory, in bytes.
const PageSize = 64 * 1024

// Manifest describes the artefacts and their sources.
type Manifest struct {
	// Python is the interpreter's version, such as "3.13.5".
	Python string `json:"python"`
	// Module is the instrumented module without its data.
	Module artefact.Artefact `json:"module"`
	// Image is the memory over which the module runs.
	Image artefact.Artefact `json:"image"`
	// ImagePages is the size of the image in pages of WebAssembly memory. The module declares
	// fewer, so the memory must be allocated with this size.
	ImagePages uint32 `json:"image_pages"`
	// StackPointer is the value of __stack_pointer shared by module and image.
	StackPointer uint32 `json:"stack_pointer"`
	// FuelPoints is the number of points at which the code counts fuel.
	FuelPoints int `json:"fuel_points"`
	// Sources are the Debian versions of the source packages, by name.
	Sources map[string]string `json:"sources"`
	// Toolchain are the versions of the build tools, by name.
	Toolchain map[string]string `json:"toolchain"`
	// Flags are the options of the build, by step.
	Flags map[string]string `json:"flags"`
	// Inputs are the SHA-256 hashes of packages and sources, by file name.
	Inputs map[string]string `json:"inputs"`
}

// MachineCode describes the machine code generated from the module.
type MachineCode struct {
	// Module is the SHA-256 hash of the module.
	Module string `json:"module"`
	// Code contains a blob of package aot for each architecture, by its name in Go.
	Code map[string]artefact.Artefact `json:"code"`
	// Profiles record which parts of the module run most, as input for clang. They differ by
	// architecture, because each architecture checks accesses in its own way.
	Profiles map[string]artefact.Artefact `json:"profiles"`
	// Toolchain, Flags and Inputs are as in Manifest.
	Toolchain map[string]string `json:"toolchain"`
	Flags     map[string]string `json:"flags"`
	Inputs    map[string]string `json:"inputs"`
}
