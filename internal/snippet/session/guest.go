package session

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/tiers"
)

// Guest runs the snippets of one session in one or several languages. A Machine drives it. It does
// not support concurrent use.
type Guest interface {
	// Prepare makes the guest ready for a snippet: it starts missing processes, compiles, and
	// repeats earlier snippets. This work is not charged to the snippet. If mustSave is set, Heal
	// must be able to return to the state before the snippet; otherwise the guest saves that state
	// only if saving is cheap.
	//
	// An error means that the snippet has not run. A loss lists earlier snippets whose effects have
	// changed.
	Prepare(ctx context.Context, s Snippet, mustSave bool) (*tiers.Loss, error)
	// Run runs the snippet. The accounts are open and answer the snippet's requests.
	Run(ctx context.Context, s Snippet) Ending
	// Heal makes the guest fit for the next snippet, after the accounts were closed. If isOrderly
	// is set, the snippet's end left the guest alive, and Heal checks whether the guest is intact.
	// A damaged guest returns to an earlier state.
	Heal(ctx context.Context, s Snippet, isOrderly bool) (Healed, error)
	// Close ends the guest. It is idempotent.
	Close() error
}

// Repeater is implemented by guests that use the tape of a snippet: see [Tape].
type Repeater interface {
	// CanRepeat reports whether the guest uses tapes in this session.
	CanRepeat() bool
}

// Mover is a Guest that can move its namespace to another tier. Its methods are those of
// [tiers.Exporter].
type Mover interface {
	Export(ctx context.Context) (tiers.State, error)
	Import(ctx context.Context, state tiers.State) (tiers.Report, error)
}

// ExactMover is a Mover that can also export its memory: see [tiers.State].
type ExactMover interface {
	Mover
	ExportExact(ctx context.Context) (tiers.State, error)
	// SavePages writes the plain memory, and returns a state without it: with the memory as Exact,
	// Import restores the namespace, in this or another process of the program.
	SavePages(ctx context.Context, to io.Writer) (tiers.State, error)
}

// Snippet is a snippet for a guest to run.
type Snippet struct {
	tiers.Job
	// Ordinal is the number of the snippet in the session, from 1.
	Ordinal int
}

// Ending describes how a snippet ended, as reported by its guest.
type Ending struct {
	// Code is one of the codes of package wire, or Died.
	Code int
	// IsGone means that the guest is unusable and must return to an earlier state.
	IsGone bool
	// Crash describes the death of a snippet that no limit stopped.
	Crash tiers.Exception
	// Rejected is the reason why the guest cannot run the snippet, which has not begun.
	Rejected *tiers.RejectedError
	// PeakMemory is in bytes; Fuel is as in tiers.Usage.
	PeakMemory int64
	Fuel       uint64
}

// Died is the code of an Ending if the snippet did not end by itself.
const Died = -1

// Healed is the state of a guest after Heal.
type Healed struct {
	// Kept is the last snippet whose effects the guest has.
	Kept int
	// Why explains why Kept is not the snippet saved last; it is empty if Kept is that snippet.
	Why string
	// Fault is the reason why the guest ended, if the snippet had nothing to do with it.
	Fault error
}
