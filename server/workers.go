package server

import (
	"context"
	"log/slog"

	"github.com/rlmhq/rlm/server/internal/workers"
	"github.com/rlmhq/rlm/tiers"
)

// Workers configure how tier wasm runs in jailed processes that hold no keys and serve one tenant
// each. The zero value works.
type Workers struct {
	// Memory bounds all workers together, in bytes; one tenant may use three quarters of it. Zero
	// means three quarters of the memory of this machine or container.
	Memory int64
	// Engine is the engine of tier wasm: see rlm.Options.WasmEngine.
	Engine string
	// AllowSampled accepts a machine without cgroups, and AllowNested one without namespaces.
	AllowSampled, AllowNested bool
	// Log receives messages for the operators of the server.
	Log *slog.Logger
}

// Start starts workers for a tier and returns a tier whose sandboxes are in them. Closing it also
// closes the given tier. The error describes what this machine lacks. The returned tier has a
// method MostMemory, which returns the highest memory limit that a session can have, in bytes.
func (w Workers) Start(ctx context.Context, wasm tiers.Tier) (tiers.Tier, error) {
	tier, err := workers.Start(ctx, wasm, workers.Options{
		Memory: w.Memory, Engine: w.Engine, AllowSampled: w.AllowSampled, AllowNested: w.AllowNested,
		Log: w.Log,
	})
	if err != nil {
		return nil, err
	}
	return tier, nil
}
