package reflect

import (
	"time"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/record"
)

// runRecord describes a reflection. Raw of every output contains it as "rr_trace".
type runRecord struct {
	Iterations      []iterationRecord `json:"iterations"`
	SubagentCalls   []subagentCall    `json:"subagent_calls"`
	TotalIterations int               `json:"total_iterations"`
	// TimedOut reports that the iterations or the budget were used up without an accepted
	// analysis.
	TimedOut bool `json:"timed_out"`
}

// iterationRecord is one iteration. Without code, the code and its output are null.
type iterationRecord struct {
	Iteration  int     `json:"iteration"` // from 0
	Code       *string `json:"code"`
	Stdout     *string `json:"stdout"`
	Stderr     *string `json:"stderr"`
	Terminated bool    `json:"terminated"` // its analysis was accepted
}

// record returns the record of the run up to now.
func (l *loop) record(timedOut bool) runRecord {
	return runRecord{
		Iterations: append([]iterationRecord{}, l.log...), SubagentCalls: l.helper.history(),
		TotalIterations: len(l.log), TimedOut: timedOut,
	}
}

// note adds an iteration to the record and, if it had a reply, to the trajectory.
func (l *loop) note(it iteration, begun time.Time) {
	entry := iterationRecord{Iteration: it.index, Code: it.code, Terminated: it.terminated}
	if it.result != nil {
		stdout := texts.Truncate(it.result.stdout, l.cfg.MaxOutputChars)
		stderr := texts.Truncate(it.result.stderr, l.cfg.MaxOutputChars)
		entry.Stdout, entry.Stderr = &stdout, &stderr
	}

	l.log = append(l.log, entry)
	l.write(it, begun)
}

// write puts an iteration into the trajectory.
func (l *loop) write(it iteration, begun time.Time) {
	if l.trace == nil {
		return
	}
	out := record.Iteration{
		Iteration: it.index + 1, Prompt: it.sent, Response: it.response,
		IterationTime: time.Since(begun).Seconds(),
	}

	if it.done != nil {
		out.CodeBlocks = it.done.CodeBlocks(l.session)
	}
	if it.reflection != nil {
		out.FinalAnswer = it.reflection
	}

	l.trace.Turn(out)
}
