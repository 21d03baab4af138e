// Package rustmodule runs the WebAssembly modules that this repository builds from Rust and embeds.
// The modules and their inputs are not trusted: a module has no access to files or the network, and
// the memory of its instances and the fuel and time of each call are bounded.
//
// scripts/wasm/rust.sh builds a module. It exports allocate(length), call(operation) and
// start(), counts its fuel, and imports the functions read, seek, write, yield and
// zone of "rlm".
package rustmodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/rlmhq/rlm/internal/machine/artefact"
	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/watchdog/watchwazero"
)

// Files are the committed files of a module.
type Files struct {
	// Manifest describes the other files, in JSON.
	Manifest []byte
	// Code is the module without its data, which is in Data. Both are compressed.
	Code, Data []byte
}

// Manifest is the description of a module written by scripts/wasm/packrust.
type Manifest struct {
	Module artefact.Artefact `json:"module"`
	Data   artefact.Artefact `json:"data"`
	// DataStart is the address of the data.
	DataStart uint32 `json:"data_start"`
	// Pages is the size of the memory at the start, in pages of 64 KiB.
	Pages      uint32 `json:"pages"`
	FuelPoints int    `json:"fuel_points"`
	Compiler   string `json:"compiler"`
}

// Options configure the compilation of a module.
type Options struct {
	// CacheDir is the folder of compiled code, or empty for none.
	CacheDir string
	Log      *slog.Logger
	// Announce, if set, is called before the code is compiled, which takes seconds.
	Announce func()
}

// Module is a compiled module. It can have many instances.
type Module struct {
	*codecache.Code
	data  []byte
	start uint32 // address of the data
	pages uint32
}

// Size returns the memory of a fresh instance, in bytes.
func (m *Module) Size() uint64 { return uint64(m.pages) << 16 }

// Compile checks and compiles a module, or loads its code from the cache.
func Compile(ctx context.Context, files Files, o Options) (*Module, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, fmt.Errorf("it needs an amd64 or arm64 processor, but this one is %s", runtime.GOARCH)
	}
	var m Manifest
	if err := json.Unmarshal(files.Manifest, &m); err != nil {
		return nil, err
	}
	cache, release, err := codecache.Open(ctx, o.CacheDir, o.Log,
		func(c *codecache.Cache) bool { return c.HasCode(m.Module.SHA256) })
	if err != nil {
		return nil, err
	}
	defer release()

	module := &Module{start: m.DataStart, pages: m.Pages}
	if module.data, err = m.Data.Decompress(files.Data); err != nil {
		return nil, err
	}
	module.Code, err = cache.Compile(ctx, codecache.Module{
		ID:       m.Module.SHA256,
		Read:     func() ([]byte, error) { return m.Module.Decompress(files.Code) },
		Import:   provideImports,
		Announce: o.Announce,
	})
	return module, err
}

// provideImports provides the module with a clock, randomness and the functions of "rlm". wazero's
// WASI has no files unless they are configured.
func provideImports(ctx context.Context, runtime wazero.Runtime) error {
	i32 := api.ValueTypeI32
	wasi := runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	// hostExit replaces wazero's proc_exit, which frees the guest's memory while the guest is still
	// on the stack.
	wasi.NewFunctionBuilder().WithGoModuleFunction(
		api.GoModuleFunc(hostExit), []api.ValueType{i32}, nil,
	).Export("proc_exit")
	if _, err := wasi.Instantiate(ctx); err != nil {
		return fmt.Errorf("cannot provide WASI: %w", err)
	}

	rlm := runtime.NewHostModuleBuilder("rlm")
	offer := func(name string, f api.GoModuleFunc, params, results []api.ValueType) {
		rlm.NewFunctionBuilder().WithGoModuleFunction(watchwazero.HostFunction(f), params, results).Export(name)
	}
	pair, result := []api.ValueType{i32, i32}, []api.ValueType{i32}
	offer("read", hostRead, pair, result)
	offer("write", hostWrite, pair, result)
	offer("seek", hostSeek, []api.ValueType{api.ValueTypeI64}, result)
	offer("yield", hostYield, nil, nil)
	offer("zone", hostZone, []api.ValueType{i32, i32, api.ValueTypeI64, i32}, result)
	if _, err := rlm.Instantiate(ctx); err != nil {
		return fmt.Errorf("cannot provide the host's functions: %w", err)
	}
	return nil
}

// Check compares the committed files with the hashes of their manifest.
func (f Files) Check() error {
	var m Manifest
	if err := json.Unmarshal(f.Manifest, &m); err != nil {
		return err
	}
	return errors.Join(m.Module.Check(f.Code), m.Data.Check(f.Data))
}
