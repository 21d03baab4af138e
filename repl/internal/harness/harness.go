// Package harness runs the loops. All loops start, write their record, observe their budget and end
// in the same way; each adds its own work in between.
package harness

import (
	"context"
	"errors"
	"time"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Root is the node of a run in its tree of loops.
const Root = "0"

// Loop is the part of a run that differs between loops. Its methods are called in the order
// below, each at most once.
type Loop interface {
	// Prepare checks everything that can be checked before any work. An error means that the run
	// cannot begin.
	Prepare(ctx context.Context) (Plan, error)
	// Solve works until it has an answer or a budget is used up. Its error is the reason for an
	// early end. The trace is nil if the run keeps no record.
	Solve(ctx context.Context, trace *record.Trace) error
	// Conclude completes the loop's outcome and returns the last event, whose node,
	// time and spending the harness fills in.
	Conclude(e *Ending) ledger.Event
}

// Plan is a run that is ready to begin.
type Plan struct {
	// Caller asks the run's models and receives its events. Without a Ledger, the run has no
	// deadline, and the runs of which it consists observe the budget.
	Caller *calls.Caller
	// Folder is the folder of the record; empty for none.
	Folder string
	// Started is the first event; the harness fills in its kind and node.
	Started ledger.Event
}

// Ending describes how a run ended.
type Ending struct {
	// Err is the error that ended the run early; nil if a budget was used up. Conclude may change
	// it, because it becomes the error of the whole run.
	Err error
	// Status and Reason are the consequence of Err or of the budget. They are empty if nothing
	// ended the run early.
	Status ledger.Status
	Reason string
	// Spent and Budget are those of the run's ledger; zero without one.
	Spent   ledger.Spending
	Budget  ledger.Budget
	Elapsed time.Duration
	// Folder is the folder of the record; empty if there is none.
	Folder string
}

// Run runs a loop: it prepares, opens the record, enforces the deadline, solves, and reports the
// ending. The error is a [*repl.SetupError] if the run could not begin, in which case neither
// Solve nor Conclude was called, or the context's cause if the context ended during preparation.
func Run(ctx context.Context, l Loop) error {
	begun := time.Now()
	plan, trace, err := prepare(ctx, l)
	if err != nil {
		return err
	}

	solveCtx, cancel := withDeadline(ctx, plan.Caller.Ledger)
	defer cancel()
	announce(plan)
	plan.Caller.ReportUnknown()
	e := &Ending{Err: l.Solve(solveCtx, trace), Folder: plan.Folder}
	if e.Err != nil {
		e.Status, e.Reason, e.Err = calls.StatusOf(solveCtx, e.Err)
	}

	settle(e, plan.Caller.Ledger, begun)
	last := l.Conclude(e)
	last.Kind, last.Node, last.Elapsed = ledger.EventRunEnded, Root, e.Elapsed
	last.Spent = &e.Spent
	plan.Caller.Tell(last)

	return errors.Join(e.Err, trace.Close())
}

// prepare makes the plan and opens its record.
func prepare(ctx context.Context, l Loop) (Plan, *record.Trace, error) {
	plan, err := l.Prepare(ctx)
	if err != nil {
		return plan, nil, refuse(ctx, err)
	}

	trace, err := plan.Caller.OpenRecord(ctx, plan.Folder)
	if err != nil {
		return plan, nil, refuse(ctx, err)
	}

	return plan, trace, nil
}

// refuse returns the error of a run that could not begin. If the caller ended the run during
// preparation, the error is not a setup error.
func refuse(ctx context.Context, err error) error {
	var setup *repl.SetupError
	if ctx.Err() != nil || errors.As(err, &setup) {
		return err
	}
	return &repl.SetupError{Err: err}
}

// withDeadline returns a context that ends with the ledger's time budget.
func withDeadline(ctx context.Context, l *calls.Ledger) (context.Context, context.CancelFunc) {
	if l == nil {
		return ctx, func() {}
	}
	return l.WithDeadline(ctx)
}

// announce emits the first event.
func announce(plan Plan) {
	first := plan.Started
	first.Kind, first.Node = ledger.EventRunStarted, Root
	plan.Caller.Tell(first)
}

// settle fills in the spending and the elapsed time of the run.
func settle(e *Ending, l *calls.Ledger, begun time.Time) {
	if l == nil {
		e.Elapsed = time.Since(begun)
		return
	}
	e.Spent, e.Budget, e.Elapsed = l.Spent(), l.Budget(), l.Elapsed()
}
