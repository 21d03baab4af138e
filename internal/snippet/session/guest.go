package session

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/tiers"
)

// Guest runs the snippets of one session in one language or several. A Machine drives
// it. It has one owner.
type Guest interface {
	// Prepare makes the guest ready for a snippet: it starts what is gone, compiles,
	// runs earlier snippets again. Nothing of that is charged to the snippet. If
	// mustSave is set, Heal must be able to return to the state before the snippet;
	// otherwise the guest saves that state if it costs little.
	//
	// An error means that the snippet has not run. A loss is what earlier snippets
	// made and is different now.
	Prepare(ctx context.Context, s Snippet, mustSave bool) (*tiers.Loss, error)
	// Run runs the snippet. The accounts have been opened and answer it.
	Run(ctx context.Context, s Snippet) Ending
	// Heal makes the guest fit for the next snippet, after the accounts were closed. If
	// isOrderly is set the snippet ended well enough for the guest to live, and Heal
	// checks whether it is unharmed. A guest that is harmed returns to an earlier
	// state.
	Heal(ctx context.Context, s Snippet, isOrderly bool) (Healed, error)
	// Close ends the guest. It is idempotent.
	Close() error
}

// Mover is a Guest whose namespace can move to another tier. Its methods are those of
// [tiers.Exporter].
type Mover interface {
	Export(ctx context.Context) (tiers.State, error)
	Import(ctx context.Context, state tiers.State) (tiers.Report, error)
}

// ExactMover is a Mover that can export its memory besides: see [tiers.State].
type ExactMover interface {
	Mover
	ExportExact(ctx context.Context) (tiers.State, error)
	// SavePages writes the memory alone, as it is, and returns a state without it: with it as
	// Exact, Import brings the namespace back, here or in another process of this program.
	SavePages(ctx context.Context, to io.Writer) (tiers.State, error)
}

// Snippet is what a guest runs.
type Snippet struct {
	tiers.Job
	// Ordinal is its number in the session, from 1.
	Ordinal int
}

// Ending is how a snippet ended, as its guest saw it.
type Ending struct {
	// Code is one of the codes of package wire, or Died.
	Code int
	// IsGone says that the guest is beyond use and has to return to an earlier state.
	IsGone bool
	// Crash describes the death of a snippet that no limit stopped.
	Crash tiers.Exception
	// Rejected says that the guest cannot run the snippet. It has not begun.
	Rejected *tiers.RejectedError
	// PeakMemory is in bytes, Fuel as in tiers.Usage.
	PeakMemory int64
	Fuel       uint64
}

// Died as a code of an Ending says that the snippet did not end by itself.
const Died = -1

// Healed is the state of a guest after Heal.
type Healed struct {
	// Kept is the last snippet whose effects the guest has.
	Kept int
	// Why says why it is not the one that was saved last, empty if it is.
	Why string
	// Fault is why the guest ended, if the snippet had nothing to do with it.
	Fault error
}
