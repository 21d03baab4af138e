// Package workers runs a tier behind a second wall. The process that holds keys, money and files,
// the parent, starts workers: this very binary, in a jail without network, files, environment and
// other processes. A worker holds sandboxes of the tier. The parent has a [tiers.Tier] whose
// sandboxes live in the workers, so whatever uses tiers uses workers as well.
//
// The two speak JSON-RPC, as clients of the session protocol do, in the words of package tiers:
// open, run, fork, export. A snippet's calls come back as requests, which the parent answers.
// Contexts go to the worker as descriptors of read-only files.
//
// A worker is hostile: a snippet may have taken it over. The parent bounds and checks all that
// comes from it, and gives it nothing but what its own sessions may see. Sessions of different
// tenants never share a worker, unless the options say so.
//
// A worker that dies takes only its sessions with it, and they return elsewhere from their last
// saved state. The next result of each says what is lost. The parent saves a session that rests, or
// has run many snippets, and evicts sessions that rest when others need their place or memory.
//
// If nothing ends a snippet, its worker is condemned: the sessions beside it move out, with all
// they have, and the worker ends when it is empty.
package workers

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Options say how many workers there are, and what they may have. The zero value works.
type Options struct {
	// Workers bounds the processes, and Sessions the sandboxes that one of them holds. Zero means
	// 8 and 32. Further sessions wait on the parent's side, as their saved state.
	Workers, Sessions int
	// Memory is what all workers together may have, in bytes, and one tenant may have three
	// quarters of it. Zero means three quarters of what this machine or container has.
	Memory int64
	// Engine is that of tier wasm: see rlm.Options.WasmEngine.
	Engine string
	// ShareWorkers lets sessions of different tenants share a worker.
	ShareWorkers bool
	// AllowSampled accepts a machine without cgroups, and AllowNested one without namespaces: see
	// package jail.
	AllowSampled, AllowNested bool
	// Grace is how long a snippet may go on beyond its limits before its worker is condemned, and
	// how long a worker may be silent before it is ended. Zero means 3 seconds.
	Grace time.Duration
	// SaveAfter is how long a session rests before its state is saved. Zero means 500 ms.
	SaveAfter time.Duration
	// Ended, if set, is told of each worker that has ended by itself or had to be ended, and why.
	Ended func(Ending)
	// Log receives messages for people who run the service.
	Log *slog.Logger
}

// Cause is why a worker has ended, in a word.
type Cause string

// The causes.
const (
	CauseMemory   Cause = "memory"   // it took more than it may have
	CauseSilent   Cause = "silent"   // it did not answer
	CauseStuck    Cause = "stuck"    // nothing ended a snippet in it
	CauseProtocol Cause = "protocol" // it sent what no worker sends
	CauseSignal   Cause = "signal"   // something outside has killed it, or a fault of its code
	CauseExit     Cause = "exit"     // it has ended itself

	causeNone Cause = "" // the parent has no use for it any more
)

// Causes are all causes.
var Causes = []Cause{CauseMemory, CauseSilent, CauseStuck, CauseProtocol, CauseSignal, CauseExit}

// Ending is the end of a worker.
type Ending struct {
	Cause Cause
	// Reason says why, in a few words.
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

// Stats count what a tier holds now.
type Stats struct {
	// Workers are processes, Live the sandboxes in them, Saved the sessions that are only a saved
	// state.
	Workers, Live, Saved int
	// Memory is what the workers use, in bytes, as measured last.
	Memory int64
	// Ended counts the workers that have ended by themselves or had to be ended.
	Ended map[Cause]int64
}

// Tier is a tier whose sandboxes live in workers.
type Tier interface {
	tiers.Tier
	Stats() Stats
	// MostMemory is the largest limit of memory that a session can have, in bytes: a larger one is
	// lowered to it, as Result.Enforced shows.
	MostMemory() int64
}
