package graph

import (
	"context"
	_ "embed" // the artefacts
	"fmt"
	"sync"

	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// `make graph` builds the artefacts. The manifest describes them.

//go:embed engine/engine.wasm.zst
var moduleFile []byte

//go:embed engine/data.zst
var dataFile []byte

//go:embed engine/manifest.json
var manifestFile []byte

var files = rustmodule.Link(rustmodule.Files{Manifest: manifestFile, Code: moduleFile, Data: dataFile})

// These are the operations, as numbered in graph/engine/src/lib.rs.
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
	opReadyLibrary
)

// engine is the compiled module, which all graphs of a process share.
type engine = rustmodule.Module

var shared struct {
	sync.Mutex
	engine *engine
}

// sharedEngine returns the process's engine, which the first call compiles.
func sharedEngine(ctx context.Context, config Config) (*engine, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.engine != nil {
		return shared.engine, nil
	}

	e, err := rustmodule.Compile(ctx, files, rustmodule.Options{
		CacheDir: config.CacheDir,
		Log:      config.Logger,
		Announce: func() {
			if config.Progress != nil {
				config.Progress("preparing the graph engine for this machine (only once): a few seconds")
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot prepare the graph's engine: %w", err)
	}
	shared.engine = e
	return e, nil
}
