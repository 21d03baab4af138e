package server

import (
	"context"
	"log/slog"

	"github.com/rlmhq/rlm/server/internal/workers"
	"github.com/rlmhq/rlm/tiers"
)

// Workers say how tier wasm runs in jailed processes without keys, each for one tenant. The zero value
// works.
type Workers struct {
	// Memory is what all workers together may have, in bytes, and one tenant may have three
	// quarters of it. Zero means three quarters of what this machine or container has.
	Memory int64
	// Engine is that of tier wasm: see rlm.Options.WasmEngine.
	Engine string
	// AllowSampled accepts a machine without cgroups, and AllowNested one without namespaces.
	AllowSampled, AllowNested bool
	// Log receives messages for people who run the service.
	Log *slog.Logger
}

// Start starts workers for a tier and returns a tier whose sandboxes live in them. It also closes the
// tier that it got. The error says what this machine lacks. The tier has a method MostMemory, the
// largest limit of memory that a session can have, in bytes.
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
