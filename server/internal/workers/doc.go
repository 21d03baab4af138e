// Package workers runs a tier behind a second wall. The parent, which is the process with the keys,
// budgets and files, starts workers. A worker is the same binary in a jail without network, files,
// environment and other processes. A worker holds sandboxes of the tier. To the parent, the workers
// are a [tiers.Tier], so everything that uses tiers can use workers.
//
// Parent and worker communicate by JSON-RPC, like clients of the session protocol, with the
// operations of package tiers: open, run, fork, export. The worker sends a snippet's host calls as
// requests, which the parent answers. The parent passes contexts as descriptors of read-only files.
//
// A worker is assumed to be hostile, because a snippet may have taken it over. The parent bounds
// and checks everything that the worker sends, and gives it only data that its own sessions may
// read. Sessions of different tenants never share a worker, unless the options allow it.
//
// The death of a worker affects only its sessions, which are restored elsewhere from their last
// saved state. The next result of each session reports the loss. The parent saves a session that
// rests or has run many snippets, and evicts resting sessions when others need their place or
// memory.
//
// If nothing can end a snippet, its worker is condemned: the other sessions move out with their
// complete state, and the worker ends when it is empty.
package workers

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Options configure the number of workers, and their resources. The zero value works.
type Options struct {
	// Workers is the maximum number of processes, and Sessions that of sandboxes in each process.
	// Zero means 8 and 32. The parent keeps additional sessions as saved states.
	Workers, Sessions int
	// Memory bounds all workers together, in bytes; one tenant may use three quarters of it. Zero
	// means three quarters of the memory of this machine or container.
	Memory int64
	// Engine is the engine of tier wasm: see rlm.Options.WasmEngine.
	Engine string
	// ShareWorkers allows sessions of different tenants to share a worker.
	ShareWorkers bool
	// AllowSampled accepts a machine without cgroups, and AllowNested one without namespaces: see
	// package jail.
	AllowSampled, AllowNested bool
	// Grace is how long a snippet may exceed its limits before its worker is condemned, and how
	// long a worker may be silent before it is killed. Zero means 3 seconds.
	Grace time.Duration
	// SaveAfter is how long a session rests before its state is saved. Zero means 500 ms.
	SaveAfter time.Duration
	// Ended, if set, is called for each worker that ended by itself or had to be ended, with the
	// cause.
	Ended func(Ending)
	// Log receives messages for the operators of the server.
	Log *slog.Logger
}

// Cause is the reason why a worker ended, as one word.
type Cause string

// These are the causes.
const (
	CauseMemory   Cause = "memory"   // it exceeded its memory
	CauseSilent   Cause = "silent"   // it did not answer
	CauseStuck    Cause = "stuck"    // nothing could end a snippet in it
	CauseProtocol Cause = "protocol" // it sent an invalid message
	CauseSignal   Cause = "signal"   // it was killed from outside, or by a fault in its code
	CauseExit     Cause = "exit"     // it exited

	causeNone Cause = "" // the parent no longer needed it
)

// Causes lists all causes.
var Causes = []Cause{CauseMemory, CauseSilent, CauseStuck, CauseProtocol, CauseSignal, CauseExit}

// Ending is the end of a worker.
type Ending struct {
	Cause Cause
	// Reason explains the cause in a few words.
	Reason string
	// Sessions is the number of sandboxes that it held.
	Sessions int
}

func (o Options) withDefaults() Options {
	o.Workers, o.Sessions = cmp.Or(o.Workers, 8), cmp.Or(o.Sessions, 32)
	o.Grace, o.SaveAfter = cmp.Or(o.Grace, 3*time.Second), cmp.Or(o.SaveAfter, 500*time.Millisecond)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

func (o Options) check() error {
	if o.Workers < 0 || o.Sessions < 0 || o.Memory < 0 || o.Grace < 0 || o.SaveAfter < 0 {
		return errors.New("the options of workers must not be negative")
	}
	return nil
}

// Stats describe the current workers and sessions of a tier.
type Stats struct {
	// Workers counts the processes, Live the sandboxes in them, and Saved the sessions that exist
	// only as a saved state.
	Workers, Live, Saved int
	// Memory is the memory of the workers, in bytes, as last measured.
	Memory int64
	// Ended counts the workers that ended by themselves or had to be ended.
	Ended map[Cause]int64
}

// Tier is a tier whose sandboxes are in workers.
type Tier interface {
	tiers.Tier
	Stats() Stats
	// MostMemory returns the highest memory limit that a session can have, in bytes. A higher limit
	// is lowered to it, as Result.Enforced shows.
	MostMemory() int64
}
