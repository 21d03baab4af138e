package viewer

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/viewer/traces"
)

// ReadTrace reads the folder that --trace wrote. The run may still be active.
func ReadTrace(dir string) (*Run, error) {
	folder, err := traces.Open(dir)
	if err != nil {
		return nil, err
	}
	build, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	return build.Run(), nil
}

// readFolder reads a record, and closes its folder.
func readFolder(folder *traces.Folder) (build *Builder, err error) {
	defer func() { err = errors.Join(err, folder.Close()) }()
	t := &traceReader{recorded: map[string]*recordedLoop{}}
	t.know(folder.Root, "0")
	notes, err := folder.Events(t.event)
	if err != nil {
		return nil, err
	}

	if len(t.build.run.Nodes) == 0 {
		t.tellLoop(folder.Root, "0")
	}
	t.build.run.Notes = append(t.build.run.Notes, notes...)
	return &t.build, nil
}

// ReadTrajectory reads a file with one loop, such as trajectory.jsonl or a log of the library by
// the RLM paper's authors.
func ReadTrajectory(file io.Reader) (*Run, error) {
	l, err := traces.Read(file)
	if err != nil {
		return nil, err
	}
	if len(l.Turns) == 0 && l.Metadata.Type == "" {
		return nil, errors.New("it has no turns")
	}

	t := &traceReader{recorded: map[string]*recordedLoop{}}
	t.know(l, "0")
	t.tellLoop(l, "0")
	return t.build.Run(), nil
}

// traceReader adds the texts from the trajectories to the events.
type traceReader struct {
	build    Builder
	recorded map[string]*recordedLoop // by their names in events
}

// recordedLoop is a loop in a trajectory. Its first remaining block is the next snippet.
type recordedLoop struct {
	turns  map[int]*traces.Turn
	blocks []*trajectory.CodeBlock
}

// know records a loop and its sub-loops by their names.
func (t *traceReader) know(l *traces.Loop, name string) {
	r := &recordedLoop{turns: map[int]*traces.Turn{}}
	for i := range l.Turns {
		turn := &l.Turns[i]
		r.turns[turn.Iteration] = turn
		for k := range turn.CodeBlocks {
			r.blocks = append(r.blocks, &turn.CodeBlocks[k])
		}
	}

	t.recorded[name] = r
	t.build.run.Notes = append(t.build.run.Notes, l.Notes...)
	for i, sub := range l.Subs {
		t.know(sub, l.NodeOf(sub, i, name))
	}
}

// event adds an event with its texts.
func (t *traceReader) event(e *ledger.Event) {
	l := t.recorded[e.Node]
	if l == nil {
		l = &recordedLoop{}
	}

	switch e.Kind { //nolint:exhaustive // the others have all their texts
	case ledger.EventReply:
		if turn := l.turns[e.Turn]; turn != nil && (e.Purpose == "root" || e.Purpose == "sub") {
			e.Response = &llm.Response{Text: turn.Response}
		}
	case ledger.EventCall:
		e.Call = l.takeCall(e.Elapsed)
	case ledger.EventSnippet:
		if len(l.blocks) > 0 && sameCode(l.blocks[0].Code, e.Text) {
			e.Ran = ranOf(l.blocks[0])
			l.blocks = l.blocks[1:]
		}
	}
	t.build.Event(e)
}

// sameCode reports whether a block's code may match the shortened code of an event.
func sameCode(code, shortened string) bool {
	n := min(len(code), len(shortened), 100)
	return code[:n] == shortened[:n]
}

// takeCall finds the record of a call in the running block by its duration, and removes it from the
// block.
func (l *recordedLoop) takeCall(elapsed time.Duration) *ledger.SubCall {
	if len(l.blocks) == 0 {
		return nil
	}
	calls := l.blocks[0].Result.RLMCalls
	for i := range calls {
		if math.Abs(calls[i].ExecutionTime-elapsed.Seconds()) < 1e-9 {
			found := subCallOf(&calls[i])
			l.blocks[0].Result.RLMCalls = slices.Delete(calls, i, i+1)
			return found
		}
	}
	return nil
}

func subCallOf(c *trajectory.CallRecord) *ledger.SubCall {
	return &ledger.SubCall{Model: c.RootModel, Prompt: c.Prompt, Response: c.Response, Agent: c.Agent}
}

// ranOf returns a block's data about the snippet.
func ranOf(block *trajectory.CodeBlock) *ledger.Snippet {
	ran := &ledger.Snippet{Source: block.Code}
	ran.Result = router.Result{Result: tiers.Result{Stdout: block.Result.Stdout, Stderr: block.Result.Stderr}}
	return ran
}

// tellLoop makes events from a trajectory that lacks them.
func (t *traceReader) tellLoop(l *traces.Loop, name string) {
	tell := func(e ledger.Event) {
		e.Node, e.Model = name, l.Metadata.RootModel
		t.build.Event(&e)
	}
	title := l.Metadata.EnvironmentType
	if model := l.Metadata.RootModel; model != "" {
		title = strings.TrimSpace(title + " by " + model)
	}

	begun := time.Time{}
	if len(l.Turns) > 0 {
		begun = turnBegan(&l.Turns[0])
	}

	tell(ledger.Event{Kind: ledger.EventRunStarted, Time: begun, Text: title})
	ended, last := begun, ledger.Event{Kind: ledger.EventRunEnded, Status: "unknown"}
	for i := range l.Turns {
		turn := &l.Turns[i]
		t.tellTurn(turn, tell)
		ended = turn.Ended()
		if final := string(turn.Final); final != "" && final != "null" {
			last.Status = string(ledger.StatusAnswered)
			last.Text = texts.Show(turn.Final)
		}
	}

	for i, sub := range l.Subs {
		t.tellLoop(sub, name+"."+strconv.Itoa(i+1))
	}
	last.Time, last.Elapsed = ended, ended.Sub(begun)
	tell(last)
}

// tellTurn makes the events of a turn. The record contains the durations of a turn's parts, but not
// their times.
func (t *traceReader) tellTurn(turn *traces.Turn, tell func(ledger.Event)) {
	at := turnBegan(turn)
	tell(ledger.Event{Kind: ledger.EventTurnStarted, Turn: turn.Iteration, Time: at})
	tell(ledger.Event{Kind: ledger.EventReply, Turn: turn.Iteration, Purpose: "root", Text: turn.Response})
	for i := range turn.CodeBlocks {
		block := &turn.CodeBlocks[i]
		for k := range block.Result.RLMCalls {
			c := &block.Result.RLMCalls[k]
			tell(ledger.Event{
				Kind: ledger.EventCall, Turn: turn.Iteration, Purpose: "leaf", Call: subCallOf(c),
				Elapsed: duration(c.ExecutionTime), Used: usedBy(c),
			})
		}
		tell(ledger.Event{
			Kind: ledger.EventSnippet, Turn: turn.Iteration, Ran: ranOf(block), Status: "ok",
			Elapsed: duration(block.Result.ExecutionTime),
		})
	}
}

func turnBegan(turn *traces.Turn) time.Time {
	ended := turn.Ended()
	if ended.IsZero() {
		return ended
	}
	return ended.Add(-duration(turn.Seconds))
}

// duration converts a number of seconds. It returns 0 for an implausible number.
func duration(seconds float64) time.Duration {
	if !(seconds >= 0 && seconds < 1e9) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// usedBy returns the tokens of a recorded call.
func usedBy(c *trajectory.CallRecord) *ledger.Spending {
	used := &ledger.Spending{Calls: 1}
	models, _ := c.UsageSummary["model_usage_summaries"].(map[string]any)
	for _, one := range models {
		summary, _ := one.(map[string]any)
		in, _ := summary["total_input_tokens"].(float64)
		out, _ := summary["total_output_tokens"].(float64)
		used.InputTokens += clampTokens(in)
		used.OutputTokens += clampTokens(out)
	}
	return used
}

func clampTokens(n float64) int64 {
	if !(n > 0 && n < 1e15) {
		return 0
	}
	return int64(n)
}
