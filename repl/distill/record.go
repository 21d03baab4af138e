package distill

import (
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/harness"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
)

// root is the name of the distillation in its tree; its runs are the sub-loops.
const root = harness.Root

// take performs a step and records it as a turn, with its findings as the answer.
func (d *distiller) take(what string, find func() (any, error)) error {
	begun := time.Now()
	d.step++
	d.tell(ledger.Event{Kind: ledger.EventTurnStarted, Purpose: what})
	found, err := find()
	if err != nil {
		return err
	}

	d.trace.Turn(record.Iteration{
		Iteration: d.step, Prompt: []string{}, Response: what, FinalAnswer: found,
		IterationTime: time.Since(begun).Seconds(),
	})
	return nil
}

// nextConfig returns the configuration for the next run.
func (d *distiller) nextConfig() run.Config {
	cfg := d.left
	d.runs++
	cfg.Trace = d.trace.Folder()
	cfg.Progress = calls.NestEvents(
		fmt.Sprintf("%s.%d", root, d.runs), d.result.Spent, d.caller.Emit,
	)
	return cfg
}

// note adds a deviation from the plan to the result and reports it as a warning.
func (d *distiller) note(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	d.result.Notes = append(d.result.Notes, note)
	d.tell(ledger.Event{Kind: ledger.EventWarning, Error: note})
}

// Conclude completes the result.
func (d *distiller) Conclude(e *harness.Ending) ledger.Event {
	r := &d.result
	r.Elapsed, r.Trace = e.Elapsed, e.Folder
	e.Spent = r.Spent
	status, reason := ledger.StatusAnswered, ""
	switch {
	case e.Status != "":
		status, reason = e.Status, e.Reason
		r.Partial = status == ledger.StatusPartial
	case r.Partial:
		status, reason = ledger.StatusPartial, strings.Join(r.Notes, "; ")
	}

	return ledger.Event{
		Turn: d.step, Status: string(status), Error: reason,
		Text: fmt.Sprintf("%s by %s, %s", quantity.Plural(len(r.Clusters), "cluster", ""), r.Method,
			quantity.Plural(len(r.Edits), "edit", "")),
	}
}

// tell emits an event of the distillation itself.
func (d *distiller) tell(e ledger.Event) {
	e.Node, e.Turn = root, d.step
	d.caller.Tell(e)
}
