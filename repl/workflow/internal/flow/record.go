package flow

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// root is the name of the run in its tree; the nodes of the file are its sub-loops.
const root = "0"

// place is the current node of a run, or the run itself, with the work done in it since its record
// was last written.
type place struct {
	node  string // in the tree
	turn  int    // a loop's turn, from 1; 0 outside of a loop
	begun time.Time
	trace *record.Trace

	written int // turns in the record
	since   time.Time
	asked   []llm.Message // the first question
	replies []string
	blocks  []trajectory.CodeBlock
}

// begin opens the record of a run.
func (r *Run) begin(f *File) {
	r.trace.Begin(trajectory.Metadata{
		RootModel: r.cfg.Model, EnvironmentType: "workflow",
		EnvironmentKwargs: map[string]any{"node": root, "file": f.Name},
		OtherBackends:     r.cfg.allowed(),
	})
}

// enter begins a node; numbers count from 1. The error is that of the record.
func (r *Run) enter(n *Node, number int) error {
	trace, err := r.trace.Child()
	if err != nil {
		return err
	}
	now := time.Now()
	r.node, r.at = n, place{
		node: root + "." + strconv.Itoa(number), begun: now, since: now, trace: trace,
	}

	uses := n.Uses
	if uses == "" {
		uses = "Python"
	}
	r.at.trace.Begin(trajectory.Metadata{
		EnvironmentType:   "workflow",
		EnvironmentKwargs: map[string]any{"node": r.at.node, "name": n.Name, "uses": uses},
	})

	r.Tell(ledger.Event{Kind: ledger.EventLoopStarted, Text: n.Name + ": " + uses})
	return nil
}

// leave ends a node; err is its error.
func (r *Run) leave(ctx context.Context, err error) {
	e := ledger.Event{
		Kind: ledger.EventLoopEnded, Status: string(StatusDone), Elapsed: time.Since(r.at.begun),
	}
	if err != nil {
		status, reason, _ := calls.StatusOf(ctx, err)
		e.Status, e.Error = string(status), reason
		r.write(nil)
	} else {
		e.Text = shown(r.result)
		r.write(r.result)
	}

	r.Tell(e)
	r.unwritten = errors.Join(r.unwritten, r.at.trace.Close())
	r.at = place{node: root}
}

// Iterate sets the iteration of a loop, from 1, for events and the record; 0 ends the
// loop.
func (r *Run) Iterate(n int) {
	if n > 0 && (r.at.turn > 0 || len(r.at.replies)+len(r.at.blocks) > 0) {
		r.write(nil)
	}
	r.at.turn = n
	if n > 0 {
		r.Tell(ledger.Event{Kind: ledger.EventTurnStarted})
	}
}

// write records the work since the last turn as a turn, with an answer or nil.
func (r *Run) write(answer any) {
	at := &r.at
	at.written++
	at.trace.Turn(record.Iteration{
		Iteration: at.written, Prompt: at.asked, Response: strings.Join(at.replies, "\n\n"),
		CodeBlocks: at.blocks, FinalAnswer: answer, IterationTime: time.Since(at.since).Seconds(),
	})

	at.since, at.asked, at.replies, at.blocks = time.Now(), nil, nil, nil
}

// replied records a model's reply.
func (r *Run) replied(a *calls.Ask, text string) {
	if r.at.trace == nil || text == "" {
		return
	}
	if len(r.at.replies) == 0 {
		r.at.asked = a.Messages
	}
	r.at.replies = append(r.at.replies, text)
}

// ran records code that ran and reports it as an event.
func (r *Run) ran(ran ledger.Snippet) {
	if r.at.trace != nil {
		r.at.blocks = append(r.at.blocks, record.BlockOf(&ran, nil))
	}
	r.Tell(ledger.Event{
		Kind: ledger.EventSnippet, Text: ran.Source, Tier: ran.Tier,
		Status: string(ran.Status), Elapsed: ran.Elapsed, Error: record.FormatFailure(&ran), Ran: &ran,
	})
}

// Tell sends an event to Config.Progress after adding its position in the run.
func (r *Run) Tell(e ledger.Event) {
	e.Node, e.Turn = r.at.node, r.at.turn
	r.caller.Tell(e)
}

// shown returns a value for display: a string verbatim, nil as "", anything else as JSON.
func shown(value any) string {
	if value == nil {
		return ""
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}

	return texts.Show(data)
}
