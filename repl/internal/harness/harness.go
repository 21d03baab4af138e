// Package harness runs the loops. All of them begin, are recorded, keep their budget
// and end in the same way; a loop adds what it does in between.
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

// Loop is the part of a run in which the loops differ. Its methods are called in the
// order in which they stand here, each at most once.
type Loop interface {
	// Prepare checks all that can be checked before any work. Its error means that the
	// run cannot begin.
	Prepare(ctx context.Context) (Plan, error)
	// Solve works until there is an answer or something is used up. Its error says what
	// ended it early. The trace is nil if the run keeps no record.
	Solve(ctx context.Context, trace *record.Trace) error
	// Conclude completes the loop's outcome and returns the last event, whose node,
	// time and spending the harness fills in.
	Conclude(e *Ending) ledger.Event
}

// Plan is a run that may begin.
type Plan struct {
	// Caller asks the run's models and takes its events. Without a Ledger the run has
	// no deadline: the runs that it consists of keep the budget.
	Caller *calls.Caller
	// Folder is where the record goes, empty for none.
	Folder string
	// Started is the first event; the harness fills in its kind and its node.
	Started ledger.Event
}

// Ending says how a run ended.
type Ending struct {
	// Err ended the run early, nil for a budget that was used up. Conclude may change
	// it: it is the error of the whole run.
	Err error
	// Status and Reason say what Err, or the budget, made of the run. They are empty
	// if nothing ended it early.
	Status ledger.Status
	Reason string
	// Spent and Budget are those of the run's ledger, zero without one.
	Spent   ledger.Spending
	Budget  ledger.Budget
	Elapsed time.Duration
	// Folder is where the record lies, empty if there is none.
	Folder string
}

// Run runs a loop: it prepares, opens the record, keeps the deadline, solves, and
// reports the ending. The error is a [*repl.SetupError] if the run could not begin, in
// which case neither Solve nor Conclude was called, and the context's cause if that
// ended while it prepared.
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

// refuse makes the error of a run that could not begin. A run that its caller ended
// while it prepared was not set up wrongly.
func refuse(ctx context.Context, err error) error {
	var setup *repl.SetupError
	if ctx.Err() != nil || errors.As(err, &setup) {
		return err
	}
	return &repl.SetupError{Err: err}
}

// withDeadline returns a context that ends with the ledger's budget of time.
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

// settle fills in what the run used.
func settle(e *Ending, l *calls.Ledger, begun time.Time) {
	if l == nil {
		e.Elapsed = time.Since(begun)
		return
	}
	e.Spent, e.Budget, e.Elapsed = l.Spent(), l.Budget(), l.Elapsed()
}
