package distill

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
)

// root is the distillation in its tree; its runs are the sub-loops.
const root = "0"

// begin opens the record.
func (d *distiller) begin() {
	model := d.left.WithDefaults().Model
	d.trace.Begin(ledger.Metadata{RootModel: model, EnvironmentType: "distill"})
	d.tell(ledger.Event{
		Kind: ledger.EventRunStarted, Model: model,
		Text: fmt.Sprintf("%s of %s", english.Plural(d.result.Failed, "failure", ""), english.Plural(d.result.Failed+d.result.Passed, "trace", "")),
	})
}

// take takes a step, which the record has as a turn, and what was found as its answer.
func (d *distiller) take(what string, find func() (any, error)) error {
	begun := time.Now()
	d.step++
	d.tell(ledger.Event{Kind: ledger.EventTurnStarted, Purpose: what})
	found, err := find()
	if err != nil {
		return err
	}
	d.trace.Turn(ledger.Iteration{
		Iteration: d.step, Prompt: []string{}, Response: what, FinalAnswer: found, IterationTime: time.Since(begun).Seconds(),
	})
	return nil
}

// next is the configuration of the next run.
func (d *distiller) next() run.Config {
	cfg := d.left
	d.runs++
	cfg.Trace = d.trace.Folder()
	cfg.Progress = calls.NestEvents(fmt.Sprintf("%s.%d", root, d.runs), d.result.Spent, d.caller.Emit)
	return cfg
}

// note says in the result and to those who watch what was not done as it should have
// been.
func (d *distiller) note(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	d.result.Notes = append(d.result.Notes, note)
	d.tell(ledger.Event{Kind: ledger.EventWarning, Error: note})
}

// ended tells how the distillation ended. The error is what ended it early.
func (d *distiller) ended(ctx context.Context, err error) error {
	r := &d.result
	status, reason, left := ledger.StatusAnswered, "", err
	switch {
	case err != nil:
		status, reason, left = calls.StatusOf(ctx, err)
		r.Partial = status == ledger.StatusPartial
	case r.Partial:
		status, reason = ledger.StatusPartial, strings.Join(r.Notes, "; ")
	}
	d.tell(ledger.Event{
		Kind: ledger.EventRunEnded, Status: string(status), Error: reason, Elapsed: r.Elapsed, Spent: &r.Spent,
		Text: fmt.Sprintf("%s by %s, %s", english.Plural(len(r.Clusters), "cluster", ""), r.Method, english.Plural(len(r.Edits), "edit", "")),
	})
	return left
}

// tell emits an event of the distillation itself.
func (d *distiller) tell(e ledger.Event) {
	e.Node, e.Turn = root, d.step
	d.caller.Tell(e)
}
