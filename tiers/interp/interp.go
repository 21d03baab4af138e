// Package interp is the tier of small interpreters: yaegi for Go, gpython for a
// proven-safe part of Python.
//
// Neither interpreter can be interrupted or bounded, so both run in a worker: a jailed process
// of this binary. A pool keeps a few workers warm. A session keeps its worker until it is
// closed. The tier replaces a worker that hangs, grows too large or dies, and reruns the
// session's earlier snippets in the new one.
//
// The tier checks the syntax tree of each snippet before running it, and rejects code that an
// interpreter runs incorrectly: see docs/reference/limitations/interp.md.
package interp

import (
	"context"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/golang/features"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/worker"
)

// Name is the tier's name.
const Name = "interp"

// Options configure the tier. The zero value works.
type Options struct {
	// Workers is the number of warm workers. Zero means 2.
	Workers int
	// RequireNamespaces rejects a jail without namespaces. A worker needs no files, so Landlock,
	// seccomp and limits suffice.
	RequireNamespaces bool
}

// tier runs Go and a subset of Python in a pool of workers.
type tier struct {
	options Options
	pool    *pool
}

// workerName is the worker's name in package jail.
const workerName = "interp"

func init() { jail.Register(workerName, worker.Main) }

// New returns the tier. It starts no workers: see Warm.
func New(options Options) tiers.Tier {
	if options.Workers == 0 {
		options.Workers = 2
	}

	t := &tier{options: options}
	t.pool = newPool(t.startJail, options.Workers, tiers.DefaultLimits().Memory)
	return t
}

// minClass returns the weakest acceptable class of jail.
func (o Options) minClass() jail.Class {
	if o.RequireNamespaces {
		return jail.Full
	}
	return jail.Nested
}

// overhead is the memory of a worker before its first snippet, in bytes.
const overhead = 64 << 20

// startJail starts a worker's jail.
func (t *tier) startJail(ctx context.Context, memory int64) (jailed, error) {
	return jail.Start(ctx, jail.Config{
		Worker:   workerName,
		Profile:  jail.Compute,
		MinClass: t.options.minClass(),
		Env:      []string{"GOTRACEBACK=none", fmt.Sprint("GOMEMLIMIT=", memory)},
		Limits: jail.Limits{
			Memory:    memory + overhead,
			Processes: 64,
			OpenFiles: 32,
			FileSize:  1,
			TmpBytes:  1 << 16,
			TmpInodes: 16,
		},
	})
}

// Info describes the tier. `make bench` measures Cost.
func (t *tier) Info() tiers.Info {
	return tiers.Info{
		Name:      Name,
		Languages: []tiers.Language{tiers.Go, tiers.Python},
		Features:  []tiers.Feature{tiers.FeatureHugeContext, features.Goroutines},
		Modules:   tiers.ModuleSet(),
		Isolation: tiers.IsolationProcess,
		Cost: tiers.Cost{
			Start: time.Millisecond, Snippet: 150 * time.Microsecond,
			Slowdown: map[tiers.Language]float64{tiers.Python: 6, tiers.Go: 30},
		},
	}
}

// Probe returns nil if this machine can build the jails.
func (t *tier) Probe(ctx context.Context) error {
	report := jail.Probe(ctx)
	if report.Class == "" || report.Class == jail.Nested && t.options.minClass() == jail.Full {
		return fmt.Errorf(
			"tier interp needs a jail of class %s, but this machine offers %q: %v", t.options.minClass(),
			report.Class, report.Advice,
		)
	}

	return nil
}

// Warm fills the pool.
func (t *tier) Warm(ctx context.Context) error { return t.pool.fill(ctx) }

// Open starts a sandbox.
func (t *tier) Open(ctx context.Context, cfg tiers.Config) (tiers.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := session.RejectFiles(Name, cfg); err != nil {
		return nil, err
	}
	return t.open(ctx, cfg)
}

// Close ends the warm workers. Close all sandboxes first.
func (t *tier) Close() error {
	t.pool.close()
	return nil
}

// reject returns a rejection of a snippet that has not run.
func reject(missing, format string, operands ...any) error {
	return &tiers.RejectedError{
		Tier:    Name,
		Missing: missing,
		Reason:  fmt.Sprintf(format, operands...),
		Effects: tiers.EffectsNeverRan,
	}
}
