package graph

import (
	"context"
	_ "embed" // the artefacts
	"encoding/json"
	"fmt"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/rlmhq/rlm/internal/artefact"
	"github.com/rlmhq/rlm/internal/codecache"
)

// `make graph` builds the artefacts. The manifest describes them.

//go:embed engine/engine.wasm.zst
var moduleFile []byte

//go:embed engine/data.zst
var dataFile []byte

//go:embed engine/manifest.json
var manifestFile []byte

type engineManifest struct {
	Module    artefact.Artefact `json:"module"`
	Data      artefact.Artefact `json:"data"`
	DataStart uint32            `json:"data_start"`
	Pages     uint32            `json:"pages"`
}

const wasmPage = 64 << 10

// The operations, as graph/engine/src/lib.rs numbers them.
const (
	opAddNodes = iota + 1
	opAddEdges
	opReadRDF
	opReadyCypher
	opReadySPARQL
	opCypher
	opSPARQL
	opSPARQLText
	opExport
	opCount
	opWriteRDF
	opCypherWrite
	opReadyFacts
	opView
	opContradictions
	opAddKnownEdges
	opWriteNodes
	opWriteEdges
)

// engine is the compiled module, which all graphs of a process share.
type engine struct {
	*codecache.Code
	data  []byte
	start uint32 // the data's address
	pages uint64
}

var shared struct {
	sync.Mutex
	engine *engine
}

// sharedEngine returns the process's engine, which the first call compiles.
func sharedEngine(ctx context.Context, config Config) (*engine, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, fmt.Errorf("graphs need an amd64 or arm64 processor, but this one is %s",
			runtime.GOARCH)
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.engine == nil {
		e, err := compile(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("cannot prepare the graph's engine: %w", err)
		}
		shared.engine = e
	}

	return shared.engine, nil
}

func compile(ctx context.Context, config Config) (*engine, error) {
	var m engineManifest
	if err := json.Unmarshal(manifestFile, &m); err != nil {
		return nil, err
	}
	cache, release, err := codecache.Open(ctx, config.CacheDir, config.Logger,
		func(c *codecache.Cache) bool { return c.HasCode(m.Module.SHA256) })
	if err != nil {
		return nil, err
	}
	defer release()

	e := &engine{start: m.DataStart, pages: uint64(m.Pages)}
	if e.data, err = m.Data.Decompress(dataFile); err != nil {
		return nil, err
	}
	e.Code, err = cache.Compile(ctx, codecache.Module{
		ID:     m.Module.SHA256,
		Read:   func() ([]byte, error) { return m.Module.Decompress(moduleFile) },
		Import: provideImports,
		Announce: func() {
			if config.Progress != nil {
				config.Progress("preparing the graph's engine for this machine, once: some seconds")
			}
		},
	})
	return e, err
}

// provideImports gives the module a clock, randomness and our functions. wazero's WASI has no
// files unless they are configured.
func provideImports(ctx context.Context, runtime wazero.Runtime) error {
	i32 := api.ValueTypeI32
	wasi := runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	// wazero's proc_exit frees the guest's memory while the guest is still on the stack.
	wasi.NewFunctionBuilder().WithGoModuleFunction(
		api.GoModuleFunc(hostExit), []api.ValueType{i32}, nil,
	).Export("proc_exit")
	if _, err := wasi.Instantiate(ctx); err != nil {
		return fmt.Errorf("cannot provide WASI: %w", err)
	}

	rlm := runtime.NewHostModuleBuilder("rlm")
	pair, result := []api.ValueType{i32, i32}, []api.ValueType{i32}
	rlm.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostRead), pair, result).Export("read")
	rlm.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostWrite), pair, result).Export("write")
	rlm.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostYield), nil, nil).Export("yield")
	if _, err := rlm.Instantiate(ctx); err != nil {
		return fmt.Errorf("cannot provide the host's functions: %w", err)
	}
	return nil
}
